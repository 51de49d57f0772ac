// What is compared: the candidates, the rows, whether models may be called, and how answers are scored.

import { useId, useState, type ReactElement } from 'react'
import type { DataRow, Scorer } from '../../api/schemas'
import type { ModelOption } from '../../forms/fields/models'
import { Button } from '../../ui/Button'
import { messageOf } from '../../ui/words'
import { nameOf, type Candidate } from './play'
import { rowsOf } from './rows'

export interface Data {
  name: string
  rows: readonly DataRow[]
}

export interface Chosen {
  candidates: readonly Candidate[]
  rows: number | 'kept' | 'file'
  data: Data | null
  calls: boolean
  budget: string
  score: Scorer
}

interface Props {
  chosen: Chosen
  onChange: (chosen: Chosen) => void
  versions: readonly number[]
  models: readonly ModelOption[]
  workflows: readonly string[]
  kept: number
}

/** A judge is a model with criteria, or a workflow. */
type Way = NonNullable<Scorer['by']> | 'workflow'

const SCORES: readonly [Way, string][] = [
  ['same', 'Equal to what is expected'],
  ['contains', 'Contains what is expected'],
  ['regex', 'Matches the expected pattern'],
  ['judge', 'Scored by a model'],
  ['workflow', 'Scored by a workflow'],
]

export function SetUp({ chosen, onChange, versions, models, workflows, kept }: Props): ReactElement {
  const [error, setError] = useState<string | null>(null)
  const set = (more: Partial<Chosen>): void => onChange({ ...chosen, ...more })
  const score = (more: Partial<Scorer>): void => set({ score: { ...chosen.score, ...more } })
  const { by = 'same', judge } = chosen.score
  const way: Way = by === 'judge' && judge?.workflow != null ? 'workflow' : by
  const list = useId()
  const load = async (file: File | undefined): Promise<void> => {
    if (!file) return
    try {
      set({ rows: 'file', data: { name: file.name, rows: rowsOf(await file.text()) } })
      setError(null)
    } catch (error) {
      setError(messageOf(error))
    }
  }
  return (
    <div className="evaluate__setup">
      <Candidates
        chosen={chosen.candidates}
        onChange={(candidates) => set({ candidates })}
        versions={versions}
        list={list}
      />
      <datalist id={list}>
        {models.map(({ model, price }) => (
          <option key={model} value={model}>
            {price}
          </option>
        ))}
      </datalist>
      <div className="evaluate__fields">
        <label>
          <span className="label">Rows</span>
          <select
            value={String(chosen.rows)}
            data-testid="evaluate-rows"
            onChange={({ target: { value } }) =>
              set({ rows: value === 'kept' || value === 'file' ? value : Number(value) })
            }
          >
            <option value="20">The last 20 runs</option>
            <option value="100">The last 100 runs</option>
            <option value="kept">{`Runs kept as tests (${kept})`}</option>
            <option value="file">Rows of a CSV file</option>
          </select>
        </label>
        {chosen.rows === 'file' ? (
          <label>
            <span className="label">
              {chosen.data
                ? `${chosen.data.name}, ${chosen.data.rows.length} rows`
                : 'Columns: inputs, expected, pin.BLOCK'}
            </span>
            <input
              type="file"
              accept=".csv,text/csv"
              data-testid="evaluate-file"
              onChange={(event) => void load(event.target.files?.[0])}
            />
          </label>
        ) : null}
        <label>
          <span className="label">Score</span>
          <select
            value={way}
            data-testid="evaluate-score"
            onChange={({ target: { value } }) =>
              score(
                value === 'workflow'
                  ? { by: 'judge', judge: { workflow: '' } }
                  : { by: value as Way & Scorer['by'], judge: null },
              )
            }
          >
            {SCORES.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span className="label">Value to score</span>
          <input
            type="text"
            className="mono"
            data-testid="evaluate-at"
            placeholder="The output, or a part: /answer"
            value={chosen.score.at ?? ''}
            onChange={(event) => score({ at: event.target.value.trim() })}
          />
        </label>
        {way === 'workflow' ? (
          <label className="evaluate__long">
            <span className="label">Workflow that returns the score of input, output, expected</span>
            <select
              data-testid="evaluate-judge-workflow"
              value={judge?.workflow ?? ''}
              onChange={(event) => score({ judge: { workflow: event.target.value } })}
            >
              <option value="">Choose a workflow</option>
              {workflows.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
        ) : by === 'judge' ? (
          <>
            <label>
              <span className="label">Model of the judge</span>
              <input
                type="text"
                list={list}
                data-testid="evaluate-judge"
                value={judge?.model ?? ''}
                onChange={(event) => score({ judge: { ...judge, model: event.target.value } })}
              />
            </label>
            <label className="evaluate__long">
              <span className="label">What is good</span>
              <input
                type="text"
                data-testid="evaluate-criteria"
                placeholder="For example: it names the order and is polite"
                value={judge?.criteria ?? ''}
                onChange={(event) => score({ judge: { ...judge, criteria: event.target.value } })}
              />
            </label>
          </>
        ) : (
          <label>
            <span className="label">Expected of all rows</span>
            <input
              type="text"
              data-testid="evaluate-expected"
              placeholder={chosen.rows === 'file' ? 'The column expected' : 'The recorded output'}
              value={typeof chosen.score.expected === 'string' ? chosen.score.expected : ''}
              onChange={(event) => score({ expected: event.target.value || null })}
            />
          </label>
        )}
        <div className="evaluate__calls">
          <label className="checkline">
            <input
              type="checkbox"
              data-testid="evaluate-calls"
              checked={chosen.calls}
              onChange={(event) => set({ calls: event.target.checked })}
            />{' '}
            Call models whose input differs
          </label>
          {chosen.calls ? (
            <label className="evaluate__budget">
              for at most $
              <input
                type="text"
                inputMode="decimal"
                aria-label="Budget in US dollars"
                data-testid="evaluate-budget"
                value={chosen.budget}
                onChange={(event) => set({ budget: event.target.value })}
              />
            </label>
          ) : null}
        </div>
      </div>
      {error !== null ? (
        <p className="notice" data-tone="err" role="alert">
          {error}
        </p>
      ) : null}
    </div>
  )
}

function Candidates({
  chosen,
  onChange,
  versions,
  list,
}: {
  chosen: readonly Candidate[]
  onChange: (candidates: readonly Candidate[]) => void
  versions: readonly number[]
  list: string
}): ReactElement {
  const [version, setVersion] = useState('')
  const [model, setModel] = useState('')
  const next: Candidate = { version: version ? Number(version) : null, model: model.trim() }
  const has = chosen.some((each) => nameOf(each) === nameOf(next))
  return (
    <div className="evaluate__candidates" role="group" aria-label="Candidates">
      {chosen.map((each) => (
        <span key={nameOf(each)} className="evaluate__candidate" data-testid="candidate">
          {nameOf(each)}
          <Button kind="bare" icon="close" iconOnly onClick={() => onChange(chosen.filter((other) => other !== each))}>
            {`Remove ${nameOf(each)}`}
          </Button>
        </span>
      ))}
      <span className="evaluate__add">
        <select
          aria-label="Version of the next candidate"
          data-testid="candidate-version"
          value={version}
          onChange={(event) => setVersion(event.target.value)}
        >
          <option value="">Draft</option>
          {versions.map((each) => (
            <option key={each} value={each}>
              Version {each}
            </option>
          ))}
        </select>
        <input
          type="text"
          list={list}
          aria-label="Model of the next candidate"
          data-testid="candidate-model"
          placeholder="With its own models"
          value={model}
          onChange={(event) => setModel(event.target.value)}
        />
        <Button
          icon="plus"
          data-testid="candidate-add"
          why={has ? 'It is in the list' : null}
          onClick={() => {
            onChange([...chosen, next])
            setModel('')
          }}
        >
          Add
        </Button>
      </span>
    </div>
  )
}
