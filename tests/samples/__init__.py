"""Sample messages: each thing that Plumbline can say, at its smallest and as it usually is.

The tests render them for every platform.
"""

from tests.samples.messages import SAMPLES as SAMPLES
from tests.samples.parts import CALIBRATED as CALIBRATED
from tests.samples.parts import HANDBOOK as HANDBOOK
from tests.samples.parts import START as START
from tests.samples.parts import UNCALIBRATED as UNCALIBRATED
from tests.samples.parts import abstention as abstention
from tests.samples.parts import alert as alert
from tests.samples.parts import answer as answer
from tests.samples.parts import badge_explanation as badge_explanation
from tests.samples.parts import citation as citation
from tests.samples.parts import closest_matches as closest_matches
from tests.samples.parts import confirmed as confirmed
from tests.samples.parts import drift_alarm as drift_alarm
from tests.samples.parts import excerpt_answer as excerpt_answer
from tests.samples.parts import explained_incident as explained_incident
from tests.samples.parts import explanation as explanation
from tests.samples.parts import hypothesis as hypothesis
from tests.samples.parts import incident as incident
from tests.samples.parts import owner as owner
from tests.samples.parts import proposed as proposed
from tests.samples.parts import resolved_incident as resolved_incident
from tests.samples.parts import unclear_owner as unclear_owner
from tests.samples.parts import with_fields as with_fields
