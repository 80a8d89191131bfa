"""Fragments of English speech that wordings of several themes share, as parts of regular expressions."""

ADVERBS = (
    r"(?:(?:\w{2,}ly|always|almost|also|do|just|kind of|sort of|much|never|often|prefer to|rather|seldom|still|"
    r"tend to|"
    r"try to|would rather|very much|now|quite|even|as a rule|in general|have to|need to|must),? ){0,4}"
)
"""Up to four adverbs between a subject and its verb."""
IT = (
    r"(?! (?:(?:all|both|some|any|most|none|either|neither) of )?(?:it|that|this|these|those|them|him|her|his|you|"
    r"your|our|us|"
    r"what|how|when|where|if|to (?:hear|know|see|learn|check|confirm|think|believe|say|ask)|(?:the|a|an|any|some) "
    r"(?:\w+ )?"
    r"(?:ideas?|sounds?|concepts?|looks?|suggestions?|options?|ones?|thoughts?|points?|approach|theme|tips?|"
    r"advice|same)|"
    r"the (?:first|second|third|last|former|latter|other|next)|one|(?:option|number) \d)\b)"
)
"""Not followed by what was just talked about, which says nothing lasting."""
DIET = (
    r"(?:vegetarian|vegan|pescatarian|pescetarian|halal|kosher|gluten[- ]free|dairy[- ]free|lactose[- ]free|"
    r"nut[- ]free|"
    r"plant[- ]based|keto\w*|paleo|low[- ](?:carb|sodium|salt|sugar|fat)|jain)"
)
"""A diet, as one names it."""
THING = (
    r"(?!(?:it|that|this|these|those|he|she|they|you|there|what|the (?:first|second|third|last|other)|"
    r"do|does|did|is|are|was|were|can|could|would|will|should|may|might|has|have|why|how|who|which|where|when|if|"
    r"whether|unless|maybe|perhaps|so|and|but|because|since|as|then|or|also|plus|yet|though|although|while|"
    r"well)\b)[\w'-]+(?: [\w'-]+){0,3}?"
)
"""A subject that is no pronoun, and no beginning of a question."""
KIND = (
    rf"(?!\d|(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|next|the|your|his|her|its|their|my|"
    rf"our|another|one|both|some|no|nothing)\b){THING}"
)
"""A subject that names a kind, such as `chain hotels`, rather than the one thing that is talked about."""
OTHERS = (
    r"(?:my|our|his|her|their) (?:\w+ )?(?:wife|husband|partner|spouse|son|daughter|kids?|child(?:ren)?|"
    r"boss|manager|supervisor|company|employer|office|friends?|colleagues?|mother|mom|mum|father|dad|brother|sister|"
    r"parents?|girlfriend|boyfriend|fianc\w+|"
    r"client|team)"
)
"""People around the user, who are not the user."""
