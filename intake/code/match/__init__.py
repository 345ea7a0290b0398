"""What in a syntax tree makes a rule apply: tables of names and methods, and one file for each kind of construct.

Knows ids of rules, never what they mean: that is declared in `intake/code/rules`.
"""

import ast
from collections.abc import Callable, Sequence

from intake.code.match.branches import match_assert, match_subscript
from intake.code.match.calls import match_call
from intake.code.match.classes import match_class
from intake.code.match.loaders import match_loader
from intake.code.match.names import match_function, match_import, match_name
from intake.code.match.strings import match_joined, match_text
from intake.code.match.values_read import match_read

Matcher = Callable[..., None]
MATCHERS: dict[type[ast.AST], Sequence[Matcher]] = {
    ast.Import: (match_import,), ast.ImportFrom: (match_import,), ast.Attribute: (match_name,), ast.Name: (match_name,),
    ast.Call: (match_call, match_loader, match_read), ast.ClassDef: (match_class,), ast.FunctionDef: (match_function,),
    ast.Subscript: (match_subscript,), ast.Assert: (match_assert,),
    ast.Constant: (match_text,), ast.JoinedStr: (match_joined,),
}
