"""What ``make demo`` shows; nothing slow is imported before it starts."""
