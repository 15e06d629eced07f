"""Progress is a line now and then where there is no terminal, and silence when asked."""

from __future__ import annotations

import sys

from tacit.experiments.common.progress import Progress


def test_plain_lines_tell_how_far_how_good_and_how_long(capsys):
    with Progress("huber", total=10, every=0.0) as progress:
        progress.update(5, loss=1.25)
        progress.say("epoch 1")
    assert capsys.readouterr().err == "huber  5/10  loss 1.25  0:00 left\nepoch 1\n"


def test_lines_come_no_closer_than_asked_except_the_last(capsys):
    with Progress("huber", total=10, every=1e9) as progress:
        for done in range(11):
            progress.update(done)
    assert capsys.readouterr().err.count("\n") == 1


def test_silence_is_silent(capsys):
    with Progress("huber", total=1, shown=False, every=0.0) as progress:
        progress.update(1)
        progress.say("done")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress("huber", total=10) as progress:
        progress.update(5, loss=1.25)
        progress.say("epoch 1")
        assert progress.bar is not None
    assert "epoch 1" in capsys.readouterr().err
