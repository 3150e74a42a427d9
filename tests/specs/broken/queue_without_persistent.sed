s/via queue/persistent via queue/
