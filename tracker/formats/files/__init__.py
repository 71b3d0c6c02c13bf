"""What all formats share: outputs that are whole or absent, records of runs, numbers, units, memory."""
