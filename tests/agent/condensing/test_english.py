"""English follow-ups say whole what they mean."""

from __future__ import annotations

import pytest

from rag.agent.condensing.condense import Exchange, by_rules, needs_context

COMPLETED = [  # the question before, its answer, the follow-up, what it must say, what it must not
    ("How long is the Nile?", "6,650 km", "And?", "Nile", ""),
    ("How long is the Nile?", "6,650 km", "So?", "Nile", ""),
    ("How long is the Nile?", "6,650 km", "And then?", "Nile", ""),
    ("How long is the Nile?", "6,650 km", "Well?", "Nile", ""),
    ("How long is the Nile?", "6,650 km", "what about?", "Nile", ""),
    ("What are the late fees?", "20 cents", "Anything else?", "late fees", ""),
    ("What are the late fees?", "20 cents", "Can you tell me more?", "late fees", ""),
    (
        "Who invented the telephone?",
        "Alexander Graham Bell invented the telephone. [1]",
        "When did he die?",
        "Alexander Graham Bell die",
        "telephone",
    ),
    (
        "Who invented the telephone?",
        "The telephone was invented by Bell.",
        "Where was he born?",
        "Bell born",
        "telephone",
    ),
    ("Who invented the telephone?", "Bell.", "Where was he born?", "Bell born", "telephone"),
    ("How do I install Skiff on Linux?", "", "What about Windows?", "Skiff Windows", ""),
    ("How do I connect Slack to Jira?", "", "And GitHub?", "Slack Jira GitHub", ""),
    ("When did Einstein win the Nobel Prize?", "", "And Bohr?", "Bohr win Nobel Prize", "Einstein"),
    ("Who invented the telephone?", "", "When did he die?", "person who invented the telephone", ""),
    ("Who wrote The Hobbit?", "The Hobbit was written by J. R. R. Tolkien.", "What else did he write?", "Tolkien", ""),
    ("Who wrote The Hobbit?", "Tolkien wrote it in 1937.", "When did he die?", "Tolkien die", "Hobbit"),
    ("Who is the CEO of Apple?", "The CEO of Apple is Tim Cook.", "How old is he?", "Tim Cook", "Apple"),
    (
        "Who is the CEO of Apple?",
        "Tim Cook has been the CEO of Apple since 2011.",
        "Where did he study?",
        "Tim Cook study",
        "",
    ),
    (
        "Who discovered radium?",
        "Marie Curie discovered radium in 1898.",
        "What prizes did she win?",
        "Marie Curie prizes",
        "radium",
    ),
    ("What is the difference between TCP and UDP?", "", "Which one is faster?", "TCP UDP faster", "difference"),
    ("What is the difference between TCP and UDP?", "", "What are their ports?", "TCP UDP ports", "difference"),
    ("What is the difference between TCP and UDP?", "", "Which should I use?", "TCP UDP use", ""),
    ("What is the difference between TCP and UDP?", "", "Does the latter guarantee delivery?", "UDP delivery", "TCP"),
    ("What is the difference between TCP and UDP?", "", "Is the former faster?", "TCP faster", "UDP"),
    ("What is the difference between TCP and UDP?", "", "Are they secure?", "TCP UDP secure", ""),
    ("How do Docker and Podman differ?", "", "Are both free?", "Docker Podman free", ""),
    ("How do Docker and Podman differ?", "", "Do they run on Windows?", "Docker Podman Windows", ""),
    ("Is Postgres faster than MySQL?", "", "Which is cheaper?", "Postgres MySQL cheaper", ""),
    ("Compare green tea with black tea", "", "Which has more caffeine?", "green tea black tea caffeine", ""),
    ("How do I install Docker on Ubuntu?", "", "what if that fails?", "Docker Ubuntu fails", ""),
    ("How do I install Docker on Ubuntu?", "", "How long does it take?", "install Docker Ubuntu take", ""),
    ("How do I install Docker on Ubuntu?", "", "and on macOS?", "Docker macOS", "Ubuntu"),
    ("How do I renew my passport?", "", "Is it possible?", "renew passport", ""),
    ("How do I renew my passport?", "", "What if it doesn't work?", "renewing passport", ""),
    ("How much is the ticket?", "", "What about students?", "ticket students", ""),
    ("When does the museum open?", "", "What about weekends?", "museum open weekends", ""),
    ("When does the museum open?", "", "What about Sundays?", "museum open Sundays", ""),
    ("When does the museum open?", "", "What about the library?", "library open", "museum"),
    ("When does the museum open?", "", "How about tomorrow?", "museum tomorrow", ""),
    ("What is aspirin used for?", "", "What are the side effects?", "side effects aspirin", ""),
    ("What is the price of oolong tea?", "", "Where does it come from?", "oolong tea come", "price"),
    ("Which planets have rings?", "", "How many of them?", "planets", ""),
    ("How tall is the bridge in London?", "", "And in Paris?", "tall bridge Paris", "London"),
    ("Does tea contain caffeine?", "", "What about coffee?", "coffee caffeine", "tea"),
    ("Can I bring my dog on the train?", "", "What about cats?", "cats train", "dog"),
    ("Does the hotel have a pool?", "", "Is it heated?", "heated", ""),
    ("What is photosynthesis?", "", "Where does it happen?", "photosynthesis happen", ""),
    ("What plans does Skiff offer?", "Free, Team", "Which one is cheapest?", "plans cheapest", ""),
    ("Who founded Tesla?", "", "What else did they found?", "Tesla", ""),
    ("When was the Eiffel Tower built?", "1889", "Who designed it?", "Eiffel Tower designed", ""),
    ("Are the coffee and tea free?", "", "Are they organic?", "coffee tea", ""),
    (
        "Who painted the Mona Lisa?",
        "The Mona Lisa is by Leonardo da Vinci [2].",
        "Where did he live?",
        "Leonardo da Vinci",
        "Lisa",
    ),
    (
        "Who was the first person on the moon?",
        "Neil Armstrong was the first person on the moon.",
        "When did he die?",
        "Neil Armstrong die",
        "moon",
    ),
    ("Who runs the company?", "Jane Doe runs it.", "How long has she been there?", "Jane Doe", ""),
    (
        "What is the difference between a virus and a bacterium?",
        "",
        "Which one is bigger?",
        "virus bacterium bigger",
        "difference",
    ),
    (
        "What is the difference between a virus and a bacterium?",
        "",
        "Can the latter be treated?",
        "bacterium treated",
        "virus",
    ),
    ("Python vs Java: which is easier?", "", "Which one has better performance?", "Python Java performance", ""),
    ("How does React compare to Vue?", "", "Which is better?", "React Vue better", ""),
    ("How does React compare to Vue?", "", "Do they both support TypeScript?", "React Vue TypeScript", ""),
    ("Should I learn Rust or Go?", "", "Which of the two is faster?", "Rust Go faster", "learn"),
    (
        "What are the differences between coffee and tea?",
        "",
        "How do they affect sleep?",
        "coffee tea sleep",
        "differences",
    ),
    ("How do I reset my password?", "", "What if it fails?", "resetting password fails", ""),
    ("Can I cancel my subscription?", "", "Is it free?", "subscription free", ""),
    ("How do I book a room?", "", "Who can do that?", "Who can book a room", ""),
    ("What is the refund policy?", "", "And for gift cards?", "refund policy gift cards", ""),
    ("When does the gym close?", "", "And the pool?", "pool close", "gym"),
    ("How much does the Pro plan cost?", "", "What about the Basic one?", "Basic plan cost", "Pro"),
    ("How much does the Pro plan cost?", "", "Yearly?", "Pro plan cost", ""),
    ("What are the side effects of ibuprofen?", "", "Is it safe for children?", "ibuprofen safe children", ""),
    ("What are the side effects of ibuprofen?", "", "What is the maximum dose?", "maximum dose ibuprofen", ""),
    ("What is the population of Tokyo?", "", "And of Osaka?", "population of Osaka", "Tokyo"),
    ("What is the population of Tokyo?", "", "How old is it?", "Tokyo", "population"),
    (
        "Which city is the largest in Japan?",
        "Tokyo is the largest city in Japan.",
        "How many people live there?",
        "live in Tokyo",
        "Japan",
    ),
    (
        "What's the capital of Australia?",
        "Canberra",
        "What is its population?",
        "capital of Australia population",
        "What's",
    ),
    ("Explain photosynthesis", "", "Why is it important?", "photosynthesis important", "Explain"),
    ("How many moons does Jupiter have?", "", "Which is the largest?", "moons largest", ""),
    ("What is the capital of France?", "", "And its population?", "France population", ""),
    ("When did Mount Aso erupt?", "", "Why?", "Why did Mount Aso erupt", ""),
    (
        "What is the difference between plan A and plan B?",
        "",
        "Which one is cheaper?",
        "plan A plan B cheaper",
        "difference",
    ),
    (
        "What is the difference between plan A and plan B?",
        "",
        "Does the former include support?",
        "plan A include support",
        "B",
    ),
    ("Can I work from home?", "", "Do I need permission for that?", "permission working from home", ""),
    ("How do I connect to the VPN?", "", "On a Mac?", "connect VPN on a Mac", ""),
    ("How many vacation days do I get?", "", "What about sick days?", "sick days get", "vacation"),
    ("What is the notice period?", "", "Is it the same for interns?", "notice period interns", ""),
]


@pytest.mark.parametrize(
    ("before", "answer", "question", "wanted", "unwanted"), COMPLETED, ids=lambda value: value[:24]
)
def test_a_follow_up_says_what_it_is_about(before: str, answer: str, question: str, wanted: str, unwanted: str) -> None:
    meant = by_rules(question, [Exchange(before, answer)])
    assert all(word in meant for word in wanted.split()), meant
    assert not any(word in meant for word in unwanted.split()), meant
    assert needs_context(question)


@pytest.mark.parametrize("question", ["What about refunds?", "How about parking?", "What about pets?", "And toilets?"])
def test_what_has_no_place_in_the_question_before_is_not_put_there(question: str) -> None:
    assert by_rules(question, [Exchange("When does the museum open?", "At nine.")]) == question


@pytest.mark.parametrize(
    "question",
    [
        "And?",
        "So?",
        "And then?",
        "Well?",
        "Ok, then?",
        "Also?",
        "But now?",
        "what about?",
        "How about?",
        "and also",
        "...",
    ],
)
def test_where_nothing_new_is_said_the_same_is_asked_again(question: str) -> None:
    assert by_rules(question, [Exchange("How long is the Nile?", "6,650 km")]) == "How long is the Nile?"


def test_who_is_not_known_is_described() -> None:
    history = [Exchange("Who invented the telephone?", "")]
    assert by_rules("When did he die?", history) == "When did the person who invented the telephone die?"
    assert by_rules("How old is she?", [Exchange("Who is the mayor of Bonn?", "")]) == "How old is the mayor of Bonn?"


def test_there_is_no_choice_between_less_than_two() -> None:
    assert by_rules("Which one is faster?", [Exchange("When does the museum open?", "")]) == "Which one is faster?"
    assert by_rules("Is the latter faster?", [Exchange("How long is the Nile?", "")]) == "Is the latter faster?"
