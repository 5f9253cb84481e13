LOG_TABLE: str
OUTPUTS_TABLE: str
KEEP_OUTPUT: str
REMOVE_OLDEST_OUTPUTS: str
READ_OUTPUT: str
USE_OUTPUT: str
VERSION: str

class NativeError(Exception): ...

def call(function: str, inputs: list[str | bytes], options: str) -> str: ...

class Stateful:
    def __new__(cls, class_: str, inputs: list[str | bytes], options: str) -> Stateful: ...
    def call(self, method: str, inputs: list[str | bytes], options: str) -> str: ...
