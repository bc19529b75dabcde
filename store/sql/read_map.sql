-- Read the version of the map from topics to cells; each change of a topic's cell raises it.
SELECT version FROM cell_map
