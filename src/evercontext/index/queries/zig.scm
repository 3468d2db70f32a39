(Decl (FnProto (IDENTIFIER) @function)) @def
(Decl (VarDecl (IDENTIFIER) @type (ErrorUnionExpr (SuffixExpr (ContainerDecl))))) @def
(source_file (Decl (VarDecl . (IDENTIFIER) @other)) @def)
(TestDecl (STRINGLITERALSINGLE) @other) @def
