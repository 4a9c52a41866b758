"""A code of real numbers, learned with the margins, beats the code of signs that it starts from on held-out digits.

Five questions tell ten digits apart; which questions are easy, a code drawn at random does not know. Both heads start
from the same code and have the same loss, the multi-class SVM; one of them may change the code. Prints::

    the code as drawn   training error 0.099, held-out error 0.156
    the code learned    training error 0.008, held-out error 0.091
"""

import torch
from sklearn.datasets import load_digits

import torch_multiclass as tm

ROWS = 900  # for training; 897 are held out


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Images of 8 by 8 as features in [0, 1], in a random order."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return torch.tensor(images / 16, dtype=torch.float32)[order], torch.tensor(labels)[order]


def trained(x: torch.Tensor, y: torch.Tensor, what: str) -> tm.ContinuousCodeHead:
    """A head whose margins, or code and margins, are trained."""
    torch.manual_seed(0)
    code = tm.codes.dense_random(10, columns=5, generator=torch.Generator().manual_seed(0))
    head = tm.ContinuousCodeHead(64, code=code)
    head.learn(what)
    changing = [parameter for parameter in head.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(changing, 0.02, weight_decay=1e-4)
    for _ in range(400):
        optimizer.zero_grad()
        head.loss(head(x), y).backward()
        optimizer.step()
    return head


if __name__ == "__main__":
    x, y = digits()
    for name, what in (("as drawn", "margins"), ("learned ", "both")):
        head = trained(x[:ROWS], y[:ROWS], what)
        wrong = (head.predict(head(x)) != y).double()
        print(f"the code {name}   training error {wrong[:ROWS].mean():.3f}, held-out error {wrong[ROWS:].mean():.3f}")
