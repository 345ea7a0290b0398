"""Rules that the bases of a class make apply: models and layers that have to be written anew for another framework."""

import ast

from intake.code.view import View

_FLAX = ("flax.linen.Module", "flax.nnx.Module", "haiku.Module", "equinox.Module", "flax.deprecated.nn.Module", "flax.nn.Module")
_TRAINER = ("pytorch_lightning.LightningModule", "pytorch_lightning.core.LightningModule", "lightning.LightningModule",
            "pytorch_lightning.core.lightning.LightningModule")


def match_class(node: ast.ClassDef, view: View) -> None:
    """Report a class that is a model or a layer of a framework."""
    for base in node.bases:
        dotted = view.dotted(base)
        if dotted in _TRAINER or (dotted.startswith("torch.nn.") and dotted.count(".") == 2 and dotted[9:10].isupper()):
            if "DataParallel" not in dotted:
                view.emit("torch-module", node.lineno, node.col_offset)
        elif dotted in _FLAX:
            view.emit("flax-module", node.lineno, node.col_offset)
        elif dotted.startswith(("keras.layers.", "tensorflow.keras.")) or dotted in ("keras.Model", "keras.models.Model",
            "tensorflow.Module",
                                                                                     "keras.Sequential",
                                                                                     "keras.models.Sequential"):
            view.emit("keras-model", node.lineno, node.col_offset)
