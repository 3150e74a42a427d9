s/ticket/queue/
