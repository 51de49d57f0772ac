-- A block is not waiting because its handler opens waits while it runs.
DROP VIEW nodes;
CREATE VIEW nodes AS
SELECT keys.run_id, r.workflow, keys.node, keys.path, keys.attempts, keys.started_at_ms, keys.at_ms AS changed_at_ms,
       CASE WHEN keys.type IN ('node.succeeded', 'region.sized', 'region.exited') THEN 'succeeded'
            WHEN keys.type = 'node.failed' THEN 'failed'
            WHEN keys.type = 'node.skipped' THEN 'skipped'
            WHEN r.status IN ('succeeded', 'failed', 'cancelled') THEN 'cancelled' -- the run ended before the node did
            WHEN keys.type = 'retry.scheduled' THEN 'retrying'
            WHEN keys.type IN ('wait.opened', 'node.left') THEN 'waiting'
            ELSE 'running' END AS status
  FROM (SELECT run_id, node, path, type, at_ms,
               max(iif(type <> 'wait.opened' AND type <> 'wait.closed', attempt, NULL)) OVER (PARTITION BY run_id, node, path) AS attempts,
               min(iif(type = 'node.started', at_ms, NULL)) OVER (PARTITION BY run_id, node, path) AS started_at_ms,
               row_number() OVER (PARTITION BY run_id, node, path ORDER BY seq DESC) AS place
          FROM events
         WHERE node IS NOT NULL
           AND type IN ('node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'retry.scheduled', 'wait.opened',
                        'wait.closed', 'node.left', 'region.sized', 'region.exited')
           AND NOT (type = 'wait.opened' AND coalesce(CAST(data AS TEXT), '') LIKE '%"each":true%')) AS keys
  JOIN runs AS r ON r.id = keys.run_id
 WHERE keys.place = 1;
