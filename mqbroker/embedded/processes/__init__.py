"""The processes of a broker on one machine: started, identified, recorded and ended with their groups."""
