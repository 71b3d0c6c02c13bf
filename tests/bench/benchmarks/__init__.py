"""Programs that measure speed and scale, and how they measure."""
