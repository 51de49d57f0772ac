// The search of a collection: what a block or an agent would find, with the sources. It begins with Enter, as it may ask a model.

import { useState, type ReactElement } from 'react'
import type { Passage } from '../../api/schemas'
import { knowledge, type Mode } from '../../net/knowledge'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { Icon } from '../../ui/icons'
import { setQuery, useLocation } from '../../ui/navigation'
import { useData } from '../../ui/useData'
import { ListState } from '../parts'
import { Source } from './words'

const MODES: Record<Mode, string> = { hybrid: 'Meaning and words', vector: 'Meaning', text: 'Words' }
/** A longer passage is folded. */
const FOLDED = 480

export function Search({ collection }: { collection: string }): ReactElement {
  const { query } = useLocation()
  const asked = query.get('q') ?? ''
  const by = query.get('by') ?? ''
  const mode: Mode = by === 'vector' || by === 'text' ? by : 'hybrid'
  const [typed, setTyped] = useState(asked)
  return (
    <section aria-label="Search">
      <form
        className="know__search"
        role="search"
        onSubmit={(event) => (event.preventDefault(), setQuery({ q: typed.trim() || null }))}
      >
        <label className="know__box">
          <Icon name="search" size={14} />
          <input
            type="search"
            aria-label="Search this collection"
            placeholder="A question, or words"
            data-testid="knowledge-search"
            maxLength={8000}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </label>
        <select
          aria-label="Search by"
          value={mode}
          onChange={(event) => setQuery({ by: event.target.value === 'hybrid' ? null : event.target.value })}
        >
          {Object.entries(MODES).map(([id, label]) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
        <Button type="submit">Search</Button>
      </form>
      {asked ? (
        <Results
          key={`${mode} ${asked}`}
          {...{ collection, asked, mode }}
          onClear={() => (setTyped(''), setQuery({ q: null }))}
        />
      ) : null}
    </section>
  )
}

interface ResultsProps {
  collection: string
  asked: string
  mode: Mode
  onClear: () => void
}

function Results({ collection, asked, mode, onClear }: ResultsProps): ReactElement {
  const found = useData(() => knowledge.search(collection, asked, mode), [collection, asked, mode])
  const passages = found.value ?? []
  return (
    <div className="know__found" data-testid="knowledge-results">
      {passages.length ? (
        <>
          <p className="know__foundhead">
            <span className="quiet" role="status">
              {passages.length === 1 ? 'One passage' : `The ${passages.length} best passages`} for “{asked}”
            </span>
            <Button kind="bare" icon="close" onClick={onClear}>
              Clear
            </Button>
          </p>
          <ol>
            {passages.map((passage) => (
              <Found key={`${passage.document} ${passage.position}`} passage={passage} />
            ))}
          </ol>
        </>
      ) : (
        <ListState data={found} empty>
          <EmptyState icon="search" title="Nothing was found">
            <Button onClick={onClear}>Clear the search</Button>
          </EmptyState>
        </ListState>
      )}
    </div>
  )
}

function Found({ passage }: { passage: Passage }): ReactElement {
  const { text, title, document, position, version, similarity, source } = passage
  const [open, setOpen] = useState(text.length <= FOLDED)
  return (
    <li className="know__passage">
      <p className="know__cite">
        <b>{title || document}</b>
        <span className="label">
          {title && title !== document ? `${document}, ` : ''}version {version}, chunk {position + 1}
          {similarity === null ? '' : `, similarity ${similarity.toFixed(2)}`}
        </span>
        <Source of={source} />
      </p>
      <p className="know__text">{open ? text : `${text.slice(0, FOLDED).trimEnd()} …`}</p>
      {text.length > FOLDED ? (
        <Button kind="bare" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Show less' : 'Show all'}
        </Button>
      ) : null}
    </li>
  )
}
