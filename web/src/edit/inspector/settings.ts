// The settings of a workflow, as fields of its panel.

import type { JsonSchema } from '../../api/types'

export const SETTINGS: Record<string, JsonSchema> = {
  timeout_s: { title: 'Run timeout (seconds)', type: 'number', default: 86_400 },
  max_concurrency: { title: 'Max concurrency', type: 'integer', default: 100 },
  on_failure: {
    title: 'When a block fails',
    enum: ['drain', 'cancel'],
    'x-titles': { drain: 'Finish running blocks', cancel: 'Cancel running blocks' },
    default: 'drain',
    description: 'What happens to other running blocks before the run fails.',
  },
  groups: {
    title: 'Concurrency groups',
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'Name and how many blocks of the group run at the same time.',
  },
  cleanup_timeout_s: {
    title: 'Cleanup timeout (seconds)',
    type: 'number',
    default: 300,
    description: 'For each cleanup: what the finally handles lead to.',
  },
  max_executions: { title: 'Max block executions', type: 'integer', default: 10_000 },
  durability: {
    title: 'Durability',
    enum: ['strict', 'ahead'],
    'x-titles': { strict: 'Strict', ahead: 'Ahead' },
    default: 'strict',
    description:
      'Strict: each step is on disk before the next one starts. Ahead: blocks that change nothing outside may start earlier.',
  },
  pool: {
    title: 'Pool',
    type: 'string',
    default: 'default',
    description: 'Workers that name this pool execute the runs.',
  },
  priority: {
    title: 'Priority',
    type: 'integer',
    minimum: -10,
    maximum: 10,
    default: 0,
    description: 'From -10 to 10. Higher ones start first, among runs that take turns by the same text.',
  },
  fair: {
    title: 'Take turns by',
    type: 'string',
    description: 'Text such as <input.customer>. Without it, runs take turns by workflow.',
  },
  limits: {
    title: 'Limits',
    type: 'array',
    description: 'How many runs with the same key are executed at the same time.',
    items: {
      type: 'object',
      required: ['key', 'at_most'],
      properties: {
        key: { title: 'Key', type: 'string', description: 'May read the input: crm <input.customer>' },
        at_most: { title: 'At most', type: 'integer', minimum: 1 },
      },
    },
  },
  rates: {
    title: 'Rates',
    type: 'array',
    description: 'How many runs with the same key start in a second.',
    items: {
      type: 'object',
      required: ['key', 'per_s'],
      properties: {
        key: { title: 'Key', type: 'string', description: 'May read the input: crm <input.customer>' },
        per_s: { title: 'Per second', type: 'number' },
      },
    },
  },
  alerts: {
    title: 'Alerts',
    type: 'object',
    'x-ui': { widget: 'fields' },
    description: 'Who is notified of failed runs and missed times, beside the addresses of the installation.',
    properties: {
      email: { title: 'Email', type: 'array', items: { type: 'string' } },
      webhook: { title: 'Webhook', type: 'string' },
      waiting_s: {
        title: 'Wait limit (seconds)',
        type: 'number',
        description: 'Also notify of waits that are open for longer.',
      },
    },
  },
  error_workflow: {
    title: 'Error workflow',
    type: 'string',
    'x-ui': { widget: 'workflow' },
    description: 'Started once for each run that fails.',
  },
  retention: {
    title: 'Retention',
    type: 'object',
    'x-ui': { widget: 'fields' },
    description: 'When runs that have ended are deleted, in place of the rule of the installation.',
    properties: {
      days: { title: 'Days', type: 'number', minimum: 0, description: 'Runs that ended longer ago are deleted.' },
      keep: {
        title: 'Keep',
        type: 'integer',
        minimum: 0,
        default: 0,
        description: 'The newest runs, kept however old they are.',
      },
    },
  },
}
