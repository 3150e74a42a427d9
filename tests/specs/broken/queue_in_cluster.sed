s/via queue/via static/
