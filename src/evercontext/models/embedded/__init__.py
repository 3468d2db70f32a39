"""A language model inside this process: SmolLM2-135M through llama.cpp, no key and no network.

It is far too small to program. So everything around it is narrow: the task is put into plain
English, the grammar leaves only paths, names and texts that the task or the tree contains, examples
show the form, and what it writes is parsed before anybody sees it. What goes into the file is still
chosen token by token by the model.
"""
