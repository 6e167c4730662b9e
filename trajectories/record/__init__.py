"""What a reader is shown of a run: facts, brief, plan and all turns as one text, and the check of
quotes from it."""

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
