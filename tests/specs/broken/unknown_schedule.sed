s/schedule backward/schedule forward/
