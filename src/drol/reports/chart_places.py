"""The places of a page into which its scripts draw charts and players."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from drol.reports.learning_curves import Chart

SCRIPTS = (("drol.reports.html", "charts.js"), ("drol.reports", "report.js"))


class Page:
    """Charts and players of a page, and the places that they are drawn into."""

    def __init__(self) -> None:
        self.charts: list[Chart] = []
        self.players: list[dict[str, Any]] = []

    def chart_html(self, charts: Sequence[Chart], kind: str = "", words: Mapping[str, str] | None = None) -> str:
        """Return places for charts, with their titles and what they mean."""
        cells = []
        for chart in charts:
            place = f"chart-{len(self.charts)}"
            self.charts.append(
                {key: value for key, value in chart.items() if key not in ("words", "name")} | {"place": place}
            )
            name, text = chart.get("name", ""), chart.get("words") or (words or {}).get(chart.get("name", ""), "")
            cells.append(
                f"<div data-name='{html.escape(name.lower(), quote=True)}'><h3>{html.escape(chart['title'])}</h3>"
                f"<p>{html.escape(text)}</p><div id='{place}'></div></div>"
            )
        return f"<div class='charts {kind}'>{''.join(cells)}</div>"

    def player_html(self, player: dict[str, Any], title: str = "") -> str:
        """Return the place of a player, with a title and what it says of itself."""
        place = f"player-{len(self.players)}"
        words = player.get("words", "")
        self.players.append(
            {key: value for key, value in player.items() if key not in ("words", "task")} | {"place": place}
        )
        head = f"<h3>{html.escape(title)}</h3>" if title else ""
        return f"{head}{f'<p>{html.escape(words)}</p>' if words else ''}<div id='{place}'></div>"
