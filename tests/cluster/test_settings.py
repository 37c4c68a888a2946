"""Settings of a scenario: the defaults are Kafka's; a wrong setting is rejected with what was expected."""

from __future__ import annotations

import pytest

from harness.limits import CONDITION_WAIT_S_MAX
from harness.model import UsageError
from harness.target.settings import MessageFormat, Settings, read_settings
from targets.broker_target.target import SETTINGS, settings_of


def test_nothing_said_is_as_in_kafka() -> None:
    assert Settings(unclean_election=False, min_isr=1, heal_within_s=CONDITION_WAIT_S_MAX) == Settings(
        **read_settings("", "x")
    )


def test_every_setting_is_read() -> None:
    text = "unclean_election=yes min_isr=2 message_format=without_epochs replica_lag_ms_max=500 heal_within_s=1.5"
    assert (
        Settings(
            unclean_election=True,
            min_isr=2,
            message_format=MessageFormat.WITHOUT_EPOCHS,
            replica_lag_ms_max=500,
            heal_within_s=1.5,
        )
    ) == Settings(**read_settings(text, "x"))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("min_isr", "expected NAME=VALUE with a name of unclean_election, min_isr"),
        ("min_rsi=2", "expected NAME=VALUE with a name of"),
        ("min_isr=0", "expected min_isr=a whole number from 1"),
        ("min_isr=two", "expected min_isr=a whole number from 1"),
        ("unclean_election=true", "expected unclean_election=yes or no"),
        ("message_format=v1", "expected message_format=with_epochs or without_epochs"),
        ("heal_within_s=-1", "expected heal_within_s=a number above 0"),
    ],
)
def test_wrong_setting_is_named_with_what_was_expected(word: str, expected: str) -> None:
    with pytest.raises(UsageError, match=f"a.txt:3: setting '{word}'; {expected}"):
        read_settings(f"replica_lag_ms_max=9 {word}", "a.txt:3")


def test_our_broker_takes_them_in_the_words_of_its_core() -> None:
    without = MessageFormat.WITHOUT_EPOCHS
    words = {
        "min_isr": 2,
        "flush_messages": 7,
        "retention_ms": 8,
        "retention_bytes": 9,
        "compact": True,
        "controlled_shutdown_ms": 6,
        "delete_retention_ms": 5,
    }
    asked = Settings(message_format=without, unclean_election=True, keys=3, tombstones=("m1",), **words)
    assert words | {"message_format": 1, "unclean_election": True} == {
        name: value for name, value in settings_of(asked).items() if name not in SETTINGS
    }
    assert SETTINGS["replica_lag_ms_max"] == settings_of(asked)["replica_lag_ms_max"]
    assert 250 == settings_of(Settings(replica_lag_ms_max=250))["replica_lag_ms_max"]
