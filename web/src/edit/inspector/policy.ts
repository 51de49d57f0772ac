// The settings of every block, as fields of its form. The names are those of `compiler/form_names.py`, too.

import type { JsonSchema, Limit } from '../../api/types'

export const RETRY: Record<string, JsonSchema> = {
  max_attempts: {
    title: 'Max attempts',
    description: 'Including the first one. Leave empty for the default of the block type.',
    type: 'integer',
    minimum: 1,
    maximum: 100,
  },
  backoff: {
    title: 'Delay',
    enum: ['fixed', 'linear', 'exponential'],
    'x-titles': { fixed: 'Fixed', linear: 'Linear', exponential: 'Exponential' },
    default: 'exponential',
  },
  initial_ms: { title: 'First delay (ms)', type: 'integer', default: 1000 },
  factor: { title: 'Factor', type: 'number', default: 2 },
  max_ms: { title: 'Max delay (ms)', type: 'integer', default: 300_000 },
  jitter: { title: 'Jitter', type: 'number', default: 0.25, description: 'Random part of the delay, from 0 to 1.' },
}

export const LIMIT: Record<keyof Limit, JsonSchema> = {
  key: {
    title: 'Limit key',
    type: 'string',
    description: 'Blocks with the same key share one limit, in all runs and workflows. For example: crm <input.region>',
  },
  at_most: {
    title: 'At most',
    type: 'integer',
    minimum: 1,
    maximum: 100_000,
    description: 'The number of blocks that may run at the same time. Others wait for their turn.',
  },
}

export const POLICY = {
  timeout_s: { title: 'Timeout (seconds)', type: 'number', description: 'For each attempt.' },
  heartbeat_timeout_ms: {
    title: 'Heartbeat timeout (ms)',
    type: 'integer',
    minimum: 100,
    description: 'An attempt that sends no heartbeat for this long fails and is retried.',
  },
  on_error: {
    title: 'When this block fails',
    enum: ['fail', 'continue'],
    'x-titles': { fail: 'Use the error branch, or fail the run', continue: 'Continue with null' },
    default: 'fail',
  },
  skip_if: {
    title: 'Skip if',
    type: 'string',
    'x-weft': 'expression',
    description: 'A JavaScript expression. If it is true, the block is skipped and the run continues after it.',
  },
  runner: {
    title: 'Runs in',
    'x-titles': { inline: 'The server', process: 'A child process', dask: 'A Dask cluster' },
    description: 'Choose a child process or a cluster for functions that compute for long.',
    default: 'inline',
  },
  group: {
    title: 'Concurrency group',
    description: 'Limits how many blocks of the group run at the same time. Set the limit in the workflow settings.',
  },
} satisfies Record<string, JsonSchema>
