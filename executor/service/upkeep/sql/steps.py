"""The view `steps`: the steps inside blocks, their last start and their end, with usage and cost."""

from __future__ import annotations

from typing import Final

_STEPS = """
SELECT last.run_id, r.workflow, last.node, last.path, last.n, last.attempt, last.kind, last.name, last.effect,
       last.started_at_ms, CASE WHEN last.type = 'step.finished' THEN last.at_ms END AS finished_at_ms,
       CASE WHEN last.type = 'step.finished' THEN last.at_ms - last.started_at_ms END AS duration_ms,
       CASE WHEN last.type = 'step.lost' THEN 'lost'
            WHEN last.type = 'step.finished' AND last.error IS NULL THEN 'succeeded'
            WHEN last.type = 'step.finished' THEN 'failed' END AS outcome,
       last.usage, last.cost, last.prices
  FROM (SELECT said.*,
               max(said.at_ms) FILTER (WHERE said.type = 'step.started') OVER same AS started_at_ms,
               max(said.said_kind) OVER same AS kind, max(said.said_name) OVER same AS name,
               max(said.said_effect) OVER same AS effect,
               row_number() OVER (PARTITION BY said.run_id, said.node, said.path, said.n
                                  ORDER BY said.seq DESC) AS place
          FROM (SELECT e.run_id, e.seq, e.at_ms, e.type, e.node, e.path, e.attempt,
                       CAST({data} ->> 'n' AS bigint) AS n, {data} ->> 'kind' AS said_kind,
                       {data} ->> 'name' AS said_name, {data} ->> 'effect' AS said_effect,
                       CAST({data} -> 'error' AS text) AS error, CAST({data} -> 'usage' AS text) AS usage,
                       CAST({data} ->> 'cost' AS double precision) AS cost, {data} ->> 'prices' AS prices
                  FROM {main}events AS e
                 WHERE e.type IN ('step.started', 'step.finished', 'step.lost')) AS said
        WINDOW same AS (PARTITION BY said.run_id, said.node, said.path, said.n)) AS last
  JOIN {main}{runs} AS r ON r.id = last.run_id
 WHERE last.place = 1"""
ON_SQLITE: Final = _STEPS.format(data="CAST(e.data AS TEXT)", main="main.", runs="run_details")
ON_POSTGRES: Final = _STEPS.format(data="convert_from(e.data, 'UTF8')::json", main="", runs="run_details")
