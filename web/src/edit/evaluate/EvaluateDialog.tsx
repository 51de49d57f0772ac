// Prompts and models side by side: versions and models on the same rows, with what each answers, its score, cost and time.

import { useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import { keptRuns } from '../../net/backtests'
import { offeredModels } from '../../net/usage'
import { modelOptions } from '../../forms/fields/models'
import { docStore } from '../../state/doc'
import { uiStore } from '../../state/ui'
import { costText } from '../../run/steps'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { EvaluateTable } from './EvaluateTable'
import { SetUp, type Chosen } from './SetUp'
import { evaluate, type Played } from './play'
import './evaluate.css'

const NONE: readonly Played[] = []
const START: Chosen = {
  candidates: [{ version: null, model: '' }],
  rows: 20,
  data: null,
  calls: false,
  budget: '0.50',
  score: { by: 'same', at: '' },
}

export default function EvaluateDialog(): ReactElement {
  const doc = useStore(docStore, (s) => s.doc)
  const base = useStore(docStore, (s) => s.baseName)
  const name = base ?? doc.name ?? 'untitled'
  const [chosen, setChosen] = useState(START)
  const [played, setPlayed] = useState(NONE)
  const [spent, setSpent] = useState(0)
  const [error, setError] = useState<string | null>(null)
  const [under, setUnder] = useState<AbortController | null>(null)
  const [rows, setRows] = useState(chosen.data)
  const last = useRef<AbortController | null>(null)
  const versions = useData(async () => (base === null ? [] : (await api.versions(base, 20)).versions), [base])
  const tests = useData(() => keptRuns(name), [name])
  const offers = useData(offeredModels, [])
  const workflows = useData(api.workflows, [])
  const models = modelOptions('', offers.value ?? [], doc).filter((option) => !option.open)
  const why = whyNot(chosen)
  const close = (): void => {
    last.current?.abort()
    uiStore.setState({ overlay: null })
  }
  const start = async (): Promise<void> => {
    const controller = new AbortController()
    last.current = controller
    setUnder(controller)
    setError(null)
    setPlayed(NONE)
    setSpent(0)
    setRows(chosen.rows === 'file' ? chosen.data : null)
    const { candidates, calls, budget, score } = chosen
    const rows = chosen.rows === 'file' ? chosen.data!.rows : chosen.rows
    const plan = { workflow: name, draft: doc, candidates, rows, budget: calls ? Number(budget) : null, score }
    const onRows = (played: readonly Played[], spent: number): void => {
      setPlayed(played)
      setSpent(spent)
    }
    try {
      await evaluate(plan, onRows, controller.signal)
    } catch (error) {
      if (!controller.signal.aborted) setError(messageOf(error))
    } finally {
      setUnder(null)
    }
  }
  const some = played.some(({ runs }) => runs.length > 0)
  return (
    <Dialog
      title={`Evaluate ${name}`}
      className="evaluate"
      open
      onClose={close}
      aside={
        <span className="evaluate__spent" data-testid="evaluate-spent" role="status">
          {chosen.calls && (some || under)
            ? `${costText(spent)} of $${chosen.budget} spent`
            : 'Nothing outside is called'}
        </span>
      }
      foot={
        <>
          {why && !under ? <p className="evaluate__why">{why}.</p> : null}
          <Button kind="bare" onClick={close}>
            Close
          </Button>
          {under ? (
            <Button icon="stop" data-testid="evaluate-stop" onClick={() => under.abort()}>
              Stop
            </Button>
          ) : (
            <Button kind="primary" data-testid="evaluate-start" why={why} onClick={() => void start()}>
              {some ? 'Evaluate again' : 'Evaluate'}
            </Button>
          )}
        </>
      }
    >
      <SetUp
        chosen={chosen}
        onChange={setChosen}
        versions={(versions.value ?? []).map((each) => each.version)}
        models={models}
        workflows={(workflows.value ?? []).map((each) => each.name).filter((each) => each !== name)}
        kept={tests.value?.length ?? 0}
      />
      {error !== null ? (
        <p className="notice" data-tone="err" role="alert">
          {error}
        </p>
      ) : null}
      {some ? (
        <EvaluateTable played={played} rows={rows} busy={under !== null} />
      ) : under ? (
        <p className="evaluate__none" role="status">
          Replaying the first row
        </p>
      ) : error === null && last.current ? (
        <p className="evaluate__none">
          {chosen.rows === 'kept' ? 'No run is kept as a test yet.' : `No run of ${name} has ended yet.`}
        </p>
      ) : null}
    </Dialog>
  )
}

function whyNot({ candidates, rows, data, calls, budget, score }: Chosen): string | null {
  if (!candidates.length) return 'Add a version or a model'
  if (rows === 'file' && !data) return 'Choose a CSV file'
  if (calls && !(Number(budget) >= 0 && budget.trim())) return 'The budget is an amount in US dollars'
  if (score.at && !score.at.startsWith('/')) return 'The value to score is a JSON pointer: it begins with a slash'
  if (score.by !== 'judge') return null
  if (!calls) return 'A judge asks a model: allow calls, within a budget'
  if (score.judge?.workflow != null) return score.judge.workflow ? null : 'Choose the workflow that is the judge'
  return score.judge?.model && score.judge.criteria?.trim()
    ? null
    : 'Choose the model of the judge, and say what is good'
}
