// What starts runs without a person, as functions: schedules and webhooks. All raise ApiError.

import * as is from '../api/checks'
import { answer, anything } from './answers'
import { enc, get, post, query, send } from './http'
import { once } from './once'
import type {
  ScheduleDetail,
  ScheduleSpec,
  ScheduleView,
  WebhookDetail,
  WebhookSpec,
  WebhookView,
} from '../api/schemas'

const schedule = (id: string): string => `/api/schedules/${enc(id)}`
const webhook = (id: string): string => `/api/webhooks/${enc(id)}`

export const triggers = {
  schedules: async (workflow?: string): Promise<ScheduleView[]> =>
    (await get(`/api/schedules${query({ workflow })}`, answer(is.ScheduleList))).schedules,
  schedule: (id: string) => get(schedule(id), answer(is.ScheduleDetail)),
  /** Make it, or change it. Raises ApiError 400, 404, 409 (a document declares it) or 422. */
  putSchedule: (id: string, spec: ScheduleSpec): Promise<ScheduleDetail> =>
    send('PUT', schedule(id), answer(is.ScheduleDetail), spec),
  deleteSchedule: (id: string) => send('DELETE', schedule(id), anything),
  /** Switched on, its next moment is the first from now. */
  switchSchedule: (id: string, on: boolean) =>
    post(`${schedule(id)}/${on ? 'enable' : 'disable'}`, {}, answer(is.ScheduleDetail)),
  /** A run beside its moments, whether it is switched on or not. */
  runSchedule: (id: string) =>
    once([schedule(id), 'run'], () => post(`${schedule(id)}/run`, {}, answer(is.RunAccepted))),
  /** The next five moments of an expression. Raises ApiError 422 with what is wrong with it. */
  upcoming: async (expr: string, tz: string): Promise<number[]> =>
    (await get(`/api/cron${query({ expr, tz })}`, answer(is.CronPreview))).upcoming_ms,

  webhooks: async (workflow?: string): Promise<WebhookView[]> =>
    (await get(`/api/webhooks${query({ workflow })}`, answer(is.WebhookList))).webhooks,
  /** Make it, or change it. Raises ApiError 400, 404, 409 (a document declares it) or 422. */
  putWebhook: (id: string, spec: WebhookSpec): Promise<WebhookDetail> =>
    send('PUT', webhook(id), answer(is.WebhookDetail), spec),
  deleteWebhook: (id: string) => send('DELETE', webhook(id), anything),
  /** With its secret and its last deliveries. */
  webhook: (id: string) => get(webhook(id), answer(is.WebhookDetail)),
  switchWebhook: (id: string, on: boolean) =>
    post(`${webhook(id)}/${on ? 'enable' : 'disable'}`, {}, answer(is.WebhookDetail)),
  /** A new secret; the old one is no longer valid. */
  rotate: async (id: string): Promise<string> =>
    (await post(`${webhook(id)}/rotate`, {}, answer(is.WebhookRotated))).secret,
}
