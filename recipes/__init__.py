"""Lightning recipes: ``torch-multiclass RECIPE ...``, in a checkout also ``python -m recipes.RECIPE ...``."""
