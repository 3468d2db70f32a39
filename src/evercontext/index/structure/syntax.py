"""Say how definitions, calls, imports and bound names look in the syntax tree of each language.

The tables name node types and fields of the tree-sitter grammars. Everything else in this package
reads the tree through them, so that a language is added by a table and a reader of its imports.
"""

from __future__ import annotations

from dataclasses import dataclass

Fields = tuple[str, ...]
ANY: Fields = ("",)
"""Every child of the node, whatever its field."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _fields(**nodes: str) -> dict[str, Fields]:
    return {node: tuple(text.split()) or ANY for node, text in nodes.items()}


@dataclass(frozen=True, slots=True)
class Syntax:
    """The node types of one language that say what a name stands for."""

    definitions: dict[str, str]
    """Node with a ``name`` field → kind of definition."""
    classes: frozenset[str]
    """Nodes whose members belong to a type."""
    functions: frozenset[str]
    """Nodes that open a scope for names."""
    members: dict[str, tuple[str, str]]
    """Node of an access like ``a.b`` → fields of ``a`` and ``b``."""
    calls: dict[str, str]
    """Node of a call → field of what is called."""
    imports: frozenset[str]
    bases: frozenset[str]
    """Nodes that hold the supertypes of a class."""
    bindings: dict[str, Fields]
    """Node that gives a name a meaning of its own → fields in which the name stands."""
    patterns: frozenset[str]
    """Nodes between such a node and the name."""
    skipped: dict[str, Fields]
    """Node → fields whose names mean no definition: keyword arguments, keys."""
    own: frozenset[str] = frozenset()
    """How a member refers to its own object or type."""
    package_wide: bool = False
    """True if files of one folder see each other's names without an import."""
    implicit_own: bool = False
    """True if a member may be called without naming its object."""
    wrappers: frozenset[str] = frozenset()
    """Nodes around a callee that change nothing: type arguments."""
    free: frozenset[str] = frozenset()
    """Nodes around a definition that leave it at the top of the file."""


PYTHON = Syntax(
    definitions={
        "class_definition": "class",
        "function_definition": "function",
        "type_alias_statement": "type",
    },
    classes=_words("class_definition"),
    functions=_words(
        "function_definition lambda list_comprehension set_comprehension"
        " dictionary_comprehension generator_expression"
    ),
    members={"attribute": ("object", "attribute")},
    calls={"call": "function"},
    imports=_words("import_statement import_from_statement future_import_statement"),
    bases=frozenset(),
    bindings=_fields(
        parameters="",
        lambda_parameters="",
        default_parameter="name",
        typed_default_parameter="name",
        typed_parameter="",
        assignment="left",
        augmented_assignment="left",
        for_statement="left",
        for_in_clause="left",
        as_pattern_target="",
        named_expression="name",
        case_pattern="",
    ),
    patterns=_words(
        "pattern_list tuple_pattern list_pattern list_splat_pattern dictionary_splat_pattern"
    ),
    skipped=_fields(keyword_argument="name", global_statement="", nonlocal_statement=""),
    own=_words("self cls super()"),
    free=_words("decorated_definition"),
)

_SCRIPT_MEMBERS = {
    "member_expression": ("object", "property"),
    "nested_type_identifier": ("module", "name"),
    "nested_identifier": ("object", "property"),
}
_SCRIPT_FUNCTIONS = _words(
    "function_declaration generator_function_declaration function_expression arrow_function"
    " method_definition generator_function method_signature function_signature"
    " abstract_method_signature function_type"
)
TYPESCRIPT = Syntax(
    definitions={
        "class_declaration": "class",
        "abstract_class_declaration": "class",
        "class": "class",
        "interface_declaration": "interface",
        "type_alias_declaration": "type",
        "enum_declaration": "enum",
        "internal_module": "namespace",
        "function_declaration": "function",
        "generator_function_declaration": "function",
        "function_signature": "function",
        "method_definition": "method",
        "method_signature": "method",
        "abstract_method_signature": "method",
        "public_field_definition": "field",
        "property_signature": "field",
        "variable_declarator": "value",
    },
    classes=_words(
        "class_declaration abstract_class_declaration class interface_declaration enum_declaration"
        " internal_module"
    ),
    functions=_SCRIPT_FUNCTIONS,
    members=_SCRIPT_MEMBERS,
    calls={"call_expression": "function", "new_expression": "constructor"},
    imports=_words("import_statement export_clause"),
    bases=_words("extends_clause implements_clause extends_type_clause class_heritage"),
    bindings=_fields(
        variable_declarator="name",
        required_parameter="pattern",
        optional_parameter="pattern",
        formal_parameters="",
        arrow_function="parameter",
        catch_clause="parameter",
        for_in_statement="left",
        type_parameter="name",
        index_signature="name",
    ),
    patterns=_words("object_pattern array_pattern rest_pattern pair_pattern assignment_pattern"),
    skipped=_fields(pair="key", pair_pattern="key", labeled_statement="label"),
    own=_words("this super"),
    wrappers=_words("instantiation_expression non_null_expression parenthesized_expression"),
    free=_words("export_statement lexical_declaration variable_declaration ambient_declaration"),
)

GO = Syntax(
    definitions={
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "type",
        "type_alias": "type",
        "const_spec": "value",
        "var_spec": "value",
        "method_elem": "method",
        "field_declaration": "field",
    },
    classes=_words("type_spec"),
    functions=_words("function_declaration method_declaration func_literal"),
    members={
        "selector_expression": ("operand", "field"),
        "qualified_type": ("package", "name"),
    },
    calls={"call_expression": "function"},
    imports=_words("import_spec"),
    bases=frozenset(),
    bindings=_fields(
        short_var_declaration="left",
        parameter_declaration="name",
        variadic_parameter_declaration="name",
        range_clause="left",
        var_spec="name",
        const_spec="name",
        type_parameter_declaration="name",
        receive_statement="left",
    ),
    patterns=_words("expression_list"),
    skipped=_fields(package_clause="", label_name=""),
    package_wide=True,
    wrappers=_words("type_instantiation_expression parenthesized_expression"),
    free=_words("type_declaration const_declaration var_declaration var_spec_list"),
)

RUST = Syntax(
    definitions={
        "function_item": "function",
        "function_signature_item": "function",
        "struct_item": "struct",
        "enum_item": "enum",
        "union_item": "struct",
        "trait_item": "trait",
        "type_item": "type",
        "associated_type": "type",
        "const_item": "value",
        "static_item": "value",
        "mod_item": "module",
        "macro_definition": "macro",
        "enum_variant": "value",
        "field_declaration": "field",
    },
    classes=_words("impl_item trait_item enum_item struct_item"),
    functions=_words("function_item closure_expression match_arm"),
    members={
        "field_expression": ("value", "field"),
        "scoped_identifier": ("path", "name"),
        "scoped_type_identifier": ("path", "name"),
    },
    calls={"call_expression": "function", "macro_invocation": "macro"},
    imports=_words("use_declaration"),
    bases=frozenset(),
    bindings=_fields(
        let_declaration="pattern",
        parameter="pattern",
        closure_parameters="",
        match_pattern="",
        for_expression="pattern",
        let_condition="pattern",
        type_parameter="name",
    ),
    patterns=_words(
        "tuple_pattern tuple_struct_pattern reference_pattern mut_pattern ref_pattern"
        " slice_pattern captured_pattern struct_pattern field_pattern or_pattern"
    ),
    skipped=_fields(field_initializer="field", lifetime=""),
    own=_words("self Self"),
    wrappers=_words("generic_function generic_type parenthesized_expression"),
)

JAVA = Syntax(
    definitions={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "class",
        "annotation_type_declaration": "interface",
        "method_declaration": "method",
        "constructor_declaration": "constructor",
        "enum_constant": "value",
        "variable_declarator": "value",
    },
    classes=_words(
        "class_declaration interface_declaration enum_declaration record_declaration"
        " annotation_type_declaration"
    ),
    functions=_words("method_declaration constructor_declaration lambda_expression"),
    members={
        "method_invocation": ("object", "name"),
        "field_access": ("object", "field"),
        "method_reference": ("", ""),
        "scoped_type_identifier": ("", ""),
    },
    calls={"method_invocation": "name", "object_creation_expression": "type"},
    imports=_words("import_declaration package_declaration"),
    bases=_words("superclass super_interfaces extends_interfaces"),
    bindings=_fields(
        variable_declarator="name",
        formal_parameter="name",
        spread_parameter="",
        catch_formal_parameter="name",
        enhanced_for_statement="name",
        lambda_expression="parameters",
        inferred_parameters="",
        resource="name",
        type_parameter="",
        instanceof_expression="name",
    ),
    patterns=frozenset(),
    skipped=_fields(element_value_pair="key", labeled_statement=""),
    own=_words("this super"),
    package_wide=True,
    implicit_own=True,
    wrappers=_words("generic_type"),
    free=_words("field_declaration"),
)

SYNTAXES = {
    "python": PYTHON,
    "typescript": TYPESCRIPT,
    "tsx": TYPESCRIPT,
    "javascript": TYPESCRIPT,
    "go": GO,
    "rust": RUST,
    "java": JAVA,
}
LOCAL_VALUES = frozenset({"value"})
"""Kinds that are a local name when they stand inside a function."""
