"""The record: what a judge is shown of a run, as one text, and the check of quotes from it.

`assembly.make_record` puts facts, brief, plan and turns together. `turn_rendering` renders a turn,
`rewrites` shows rewritten files by their changes, `folding` and `noise` fold what says nothing, and
`budget` decides what gives way if the run does not fit. `quotes` finds a quote in the run.

Start with `assembly.make_record` and `quotes.QuoteIndex`.
"""

from .assembly import DEFAULT_BUDGET as DEFAULT_BUDGET
from .assembly import MIN_BUDGET as MIN_BUDGET
from .assembly import PACKING as PACKING
from .assembly import Omission as Omission
from .assembly import Record as Record
from .assembly import estimate_tokens as estimate_tokens
from .assembly import make_record as make_record
from .facts import Fact as Fact
from .facts import number_facts as number_facts
from .quotes import Evidence as Evidence
from .quotes import QuoteIndex as QuoteIndex
from .quotes import check_quote as check_quote
