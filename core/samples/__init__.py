"""Sample messages: each thing that Plumbline can say, at its smallest and as it usually is.

The tests render them for every platform.
"""

from core.samples.messages import SAMPLES as SAMPLES
from core.samples.parts import CALIBRATED as CALIBRATED
from core.samples.parts import HANDBOOK as HANDBOOK
from core.samples.parts import START as START
from core.samples.parts import UNCALIBRATED as UNCALIBRATED
from core.samples.parts import abstention as abstention
from core.samples.parts import alert as alert
from core.samples.parts import answer as answer
from core.samples.parts import badge_explanation as badge_explanation
from core.samples.parts import citation as citation
from core.samples.parts import confirmed as confirmed
from core.samples.parts import drift_alarm as drift_alarm
from core.samples.parts import excerpt_answer as excerpt_answer
from core.samples.parts import explained_incident as explained_incident
from core.samples.parts import explanation as explanation
from core.samples.parts import hypothesis as hypothesis
from core.samples.parts import incident as incident
from core.samples.parts import owner as owner
from core.samples.parts import proposed as proposed
from core.samples.parts import resolved_incident as resolved_incident
from core.samples.parts import suggested_duplicate as suggested_duplicate
from core.samples.parts import suggested_severity as suggested_severity
from core.samples.parts import unclear_owner as unclear_owner
