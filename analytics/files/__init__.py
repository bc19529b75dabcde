"""The files of an export: their folder, their manifest, and the files that an increment adds."""
