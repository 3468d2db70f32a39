"""A language model inside this process: SmolLM2-135M through llama.cpp, no key and no network.

It is far too small to program. Its one purpose is the first try: a task of one sentence, in English
or Japanese, ends in one small new file.
"""
