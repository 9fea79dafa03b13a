"""Train the network that `tessella demo` analyses: 8 x 8 images of handwritten digits, 64-10-10-10.

pip install 'tessella[torch]' scikit-learn onnxscript
python examples/train_digits.py src/tessella/data/digits.onnx
"""

import sys

import onnx
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn


def main(path: str) -> None:
    """Train, report the test error, export."""
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    scaled = torch.tensor(images / 16.0, dtype=torch.float32)
    split = train_test_split(scaled, torch.tensor(labels), test_size=0.25, random_state=0)
    train_x, test_x, train_y, test_y = split
    model = nn.Sequential(nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-5)
    for _ in range(150):
        for batch in torch.randperm(len(train_x)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(train_x[batch]), train_y[batch]).backward()
            optimiser.step()
    model.eval()
    error = float((model(test_x).argmax(dim=1) != test_y).float().mean())
    print(f"test error {100 * error:.1f} %")
    batch_axis = {0: torch.export.Dim("batch")}
    exported = torch.onnx.export(
        model, (train_x[:2],), input_names=["image"], output_names=["logits"], dynamic_shapes=(batch_axis,), verbose=False
    )
    onnx.save(without_traces(exported.model_proto), path)


def without_traces(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop the exporter's notes: they hold source lines and paths of the machine it ran on."""
    for item in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        del item.metadata_props[:]
        item.doc_string = ""
    return model


if __name__ == "__main__":
    main(sys.argv[1])
