(call target: (identifier) @_k (arguments . (alias) @type) (#match? @_k "^(defmodule|defprotocol|defimpl)$")) @def
(call target: (identifier) @_k (arguments . [(call target: (identifier) @function) (identifier) @function (binary_operator left: (call target: (identifier) @function))]) (#match? @_k "^(def|defp|defmacro|defmacrop|defguard|defdelegate|defcallback)$")) @def
