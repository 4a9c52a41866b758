"""Any binary learner through any code."""
