"""The type of structured output."""

from pydantic import BaseModel


class Document(BaseModel):
    name: str
    age: int
    friendly: bool
    likes: list[str]
