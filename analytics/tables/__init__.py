"""What the export holds: per table its columns, and how they are made of the broker's."""
