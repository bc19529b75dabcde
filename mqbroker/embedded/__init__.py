"""A broker on one machine: its processes under a supervisor, private servers, and the commands of ./mq."""
