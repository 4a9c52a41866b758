"""Support vector machines by their duals."""
