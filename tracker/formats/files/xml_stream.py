"""Read XML as a stream, whatever its size, and refuse hostile files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, InputSource, Locator

from defusedxml import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from ...errors import InputError
from .decimals import decimal

_DEEPEST = 64
"""Largest nesting depth of elements; the supported formats need eight."""

Begin = Callable[[str, Mapping[str, str], int], object]
Text = Callable[[str, str], object]
End = Callable[[str], object]


class Enough(Exception):
    """Raised by a callback to stop reading."""


def read_xml(path: Path, begin: Begin, text: Text | None = None, end: End | None = None) -> None:
    """Call `begin` with name, attributes and line of every element, in the order of the file.

    `text` gets the name of the innermost element and a piece of its text, `end` the name of an element.

    Raises
    ------
    InputError
        If the file is not XML, declares a document type or entities, or nests elements more than 64 deep.
    """
    # Entities, which can explode or fetch files, can be declared only in a document type.
    parser = DefusedExpatParser(forbid_dtd=True)
    parser.setContentHandler(_Handler(path, begin, text, end))
    try:
        with path.open("rb") as file:
            source = InputSource()  # without the name, which need not be UTF-8
            source.setByteStream(file)
            parser.parse(source)
    except InputError:
        raise
    except Enough:
        return
    except DefusedXmlException:
        raise InputError(
            f"{path} declares a document type or entities, which no file of tracks needs. "
            "It may be an attack; remove the <!DOCTYPE …> if you trust it."
        ) from None
    except SAXParseException as error:
        raise InputError(
            f"{path}, line {error.getLineNumber()}: no well-formed XML ({error.getMessage()}). "
            "The file may be cut short; export it again."
        ) from None
    except (SAXException, ValueError, LookupError) as error:  # unknown encodings
        raise InputError(f"{path} cannot be read as XML: {error}. Save it as UTF-8.") from None


def root_of(path: Path) -> str:
    """Name of the root element.

    Raises InputError as `read_xml` does.
    """
    return first_of(path, lambda _: True)


def first_of(path: Path, wanted: Callable[[str], bool]) -> str:
    """Name of the first element whose name is wanted, where reading stops; empty if there is none."""
    found: list[str] = []

    def begin(name: str, *_: object) -> None:
        if wanted(name):
            found.append(name)
            raise Enough

    read_xml(path, begin)
    return found[0] if found else ""


def number(path: Path, line: int, what: str, attributes: Mapping[str, str], name: str) -> float:
    """Parse a required numeric attribute.

    Raises
    ------
    InputError
        The message names the line, `what` and the attribute.
    """
    given = attributes.get(name)
    if given is None:
        raise InputError(f"{path}, line {line}: {what} has no {name}. Add it, or remove the {what}.")
    try:
        return decimal(given)
    except ValueError:
        raise InputError(
            f"{path}, line {line}: {name} of {what} is {given[:60]!r}; a number is needed. Fix it."
        ) from None


@dataclass(eq=False)
class _Handler(ContentHandler):
    """Calls the functions of `read_xml`."""

    path: Path
    begin: Begin
    text: Text | None
    end: End | None
    _locator: Locator | None = None  # that the parser sets

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._prefixes = {"xml", "xmlns"}

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        line = (self._locator.getLineNumber() if self._locator else None) or 0
        self._open.append(name)
        if len(self._open) > _DEEPEST:
            raise InputError(
                f"{self.path}, line {line}: more than {_DEEPEST} elements inside each other. "
                "This is no file of tracks."
            )
        names = (name, *attrs.getNames())
        if ":" in "".join(names):
            self._look_at_prefixes(names, line)
        self.begin(name, cast(Mapping[str, str], attrs), line)

    def _look_at_prefixes(self, names: tuple[str, ...], line: int) -> None:
        """Refuse an undeclared namespace prefix, whose elements or attributes would be ignored."""
        self._prefixes.update(name.removeprefix("xmlns:") for name in names if name.startswith("xmlns:"))
        unknown = {name.partition(":")[0] for name in names if ":" in name} - self._prefixes
        if unknown:
            raise InputError(
                f"{self.path}, line {line}: the prefix {min(unknown)[:40]!r} of a name is not declared. "
                "The file may be damaged; export it again."
            )

    def endElement(self, name: str) -> None:
        self._open.pop()
        if self.end is not None:
            self.end(name)

    def characters(self, content: str) -> None:
        if self.text is not None and self._open:
            self.text(self._open[-1], content)
