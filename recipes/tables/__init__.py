"""Tables of papers done again: output codes by boosting and by machines, and how time grows with the classes.

::

    python -m recipes.tables run --path FOLDER --jobs 2
    python -m recipes.tables report
    python -m recipes.tables report --output recipes/results/tables    # what a checkout has of them

`run` keeps each finished training, so it can be stopped and started again, and several may run side by side on
different sets; `report` writes what is done so far beside the printed figures.
"""
