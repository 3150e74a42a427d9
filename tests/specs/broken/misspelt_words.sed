s|rol load|role load|
s|tak y =|take y =|
