// Tokens and costs of models: by day, by workflow, by model.

import type { ReactElement } from 'react'
import type { SpentView, UsagePage } from '../api/schemas'
import { usage } from '../net/usage'
import { Link, setQuery, useLocation } from '../ui/navigation'
import TopBar from '../edit/shell/TopBar'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { ListState, Stale, usePolled } from './parts'
import { barsOf, callsText, costText, countText, dayOf, daysBefore, daysIn, isDay, isPriced, type Bar } from './usage'
import './pages.css'
import './usage.css'

const PERIODS = [7, 30, 90] as const

export default function Usage(): ReactElement {
  const { query } = useLocation()
  const today = dayOf(Date.now())
  const [asked, until] = [query.get('from'), query.get('to')]
  const to = isDay(until) ? until : today
  const from = isDay(asked) ? asked : daysBefore(to, 29)
  const workflow = query.get('workflow')
  const found = usePolled(
    async () => {
      const period = { from, to, workflow }
      const [day, byWorkflow, model] = await Promise.all([
        usage('day', period),
        usage('workflow', period),
        usage('model', period),
      ])
      return { day, workflow: byWorkflow, model }
    },
    [from, to, workflow],
    30_000,
  )
  const pick = (change: { from?: string; to?: string }): void => setQuery({ from, to, ...change })
  return (
    <div className="screen">
      <TopBar />
      <main className="page page--wide">
        <h1>Usage</h1>
        <div className="filters" role="group" aria-label="Period">
          {PERIODS.map((days) => (
            <button
              key={days}
              type="button"
              className="pill"
              aria-pressed={to === today && daysIn(from, to) === days}
              onClick={() => setQuery({ from: daysBefore(today, days - 1), to: null })}
            >
              {days} days
            </button>
          ))}
          <label className="usage__day">
            From{' '}
            <input
              type="date"
              value={from}
              max={to}
              onChange={(event) => isDay(event.target.value) && pick({ from: event.target.value })}
            />
          </label>
          <label className="usage__day">
            to{' '}
            <input
              type="date"
              value={to}
              min={from}
              onChange={(event) => isDay(event.target.value) && pick({ to: event.target.value })}
            />
          </label>
          {workflow ? (
            <Button icon="close" onClick={() => setQuery({ workflow: null })}>
              {`Workflow ${workflow}`}
            </Button>
          ) : null}
        </div>
        <Stale data={found} />
        {found.value ? (
          found.value.day.total.calls ? (
            <Found {...found.value} />
          ) : (
            <EmptyState title="No model was asked in these days">
              <p>Agents, routers, evaluators and guardrails that ask a model appear here.</p>
            </EmptyState>
          )
        ) : (
          <ListState data={found} empty>
            {null}
          </ListState>
        )}
      </main>
    </div>
  )
}

function Found({ day, workflow, model }: Record<'day' | 'workflow' | 'model', UsagePage>): ReactElement {
  return (
    <>
      <section aria-labelledby="usage-days">
        <h2 id="usage-days">By day</h2>
        <dl className="usage__total" data-testid="usage-total">
          <Fact name="Cost" value={costText(day.total)} />
          <Fact name="Calls" value={countText(day.total.calls)} />
          <Fact name="Input tokens" value={countText(day.total.input_tokens)} />
          <Fact name="Output tokens" value={countText(day.total.output_tokens)} />
        </dl>
        <Chart page={day} />
        <p className="quiet" data-testid="usage-prices">
          {day.prices.length ? `Prices: ${day.prices.join(', ')}. ` : ''}
          {day.total.unpriced
            ? `${callsText(day.total.unpriced)} ${day.total.unpriced === 1 ? 'has' : 'have'} no known price, and ${
                day.total.unpriced === 1 ? 'is' : 'are'
              } not part of the cost. `
            : ''}
          Costs are in US dollars, computed when a call was made. Days are in UTC. Runs that were deleted are part of
          it.
        </p>
      </section>
      <Sums title="By workflow" name="Workflow" items={workflow.items} link />
      <Sums title="By model" name="Model" items={model.items} />
    </>
  )
}

function Fact({ name, value }: { name: string; value: string }): ReactElement {
  return (
    <div>
      <dt className="label">{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

function Chart({ page }: { page: UsagePage }): ReactElement {
  const bars = barsOf(page.from, page.to, page.items)
  return (
    <figure className="usage__chart">
      <figcaption className="label">{isPriced(page.items) ? 'Cost' : 'Tokens'}</figcaption>
      <ol className="usage__bars">
        {bars.map((bar) => (
          <li key={bar.from} title={barText(bar)} data-empty={bar.spent.length ? undefined : ''}>
            <span className="usage__bar" style={{ height: `${Math.round(bar.height * 1000) / 10}%` }} />
            <span className="visually-hidden">{barText(bar)}</span>
          </li>
        ))}
      </ol>
      <p className="usage__ends label" aria-hidden="true">
        <span>{page.from}</span>
        <span>{page.to}</span>
      </p>
    </figure>
  )
}

function barText({ from, to, spent }: Bar): string {
  const days = from === to ? from : `${from} to ${to}`
  if (!spent.length) return `${days}: none`
  return spent
    .map((each) => {
      const tokens = countText(each.input_tokens + each.output_tokens)
      return `${each.key}: ${costText(each)}, ${callsText(each.calls)}, ${tokens} tokens`
    })
    .join('\n')
}

const COLUMNS = ['Cost', 'Calls', 'Input', 'Cached', 'Output'] as const

function Sums(props: { title: string; name: string; items: readonly SpentView[]; link?: boolean }): ReactElement {
  const { title, name, items, link } = props
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <div className="usage__scroll" role="group" aria-label={`Table: ${title}`} tabIndex={0}>
        <table className="usage__table">
          <thead>
            <tr className="label">
              <th scope="col">{name}</th>
              {COLUMNS.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <tr key={item.key}>
                <th scope="row">
                  {link ? <Link to={`/runs?workflow=${encodeURIComponent(item.key)}`}>{item.key}</Link> : item.key}
                </th>
                <td>{costText(item)}</td>
                <td>{countText(item.calls)}</td>
                <td>{countText(item.input_tokens)}</td>
                <td>{countText(item.cached_tokens)}</td>
                <td>{countText(item.output_tokens)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
