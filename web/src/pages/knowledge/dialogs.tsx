// The forms that make a collection and that add a text to one.

import { useState, type ReactElement } from 'react'
import type { CollectionView, DocumentView } from '../../api/schemas'
import { ModelBox } from '../../forms/fields/ModelField'
import { embeddingOptions, endpointProblem } from '../../forms/fields/models'
import { knowledge } from '../../net/knowledge'
import { EditDialog } from '../settings/EditDialog'
import { CodeInput, Part } from '../settings/form'

const CHUNK = 1600
const OVERLAP = 200

interface CreateProps {
  /** Those that are in use. */
  names: readonly string[]
  onDone: (made: CollectionView) => void
  onClose: () => void
}

export function CreateDialog({ names, onDone, onClose }: CreateProps): ReactElement {
  const [name, setName] = useState('')
  const [model, setModel] = useState('')
  const [description, setDescription] = useState('')
  const [chunk, setChunk] = useState(String(CHUNK))
  const [overlap, setOverlap] = useState(String(OVERLAP))
  const duplicate = names.includes(name.trim()) ? 'Another collection has this name.' : null
  const sizes = wrongSizes(chunk, overlap)
  const why = !name.trim()
    ? 'Enter a name.'
    : (duplicate ?? (!model.trim() || model.endsWith(':') ? 'Choose a model of embeddings.' : sizes))
  return (
    <EditDialog
      title="New collection"
      act="Create collection"
      testId="collection-form"
      why={why}
      fields={['name', 'model', 'description', 'chunk_chars']}
      onClose={onClose}
      onSend={async () =>
        onDone(
          await knowledge.create({
            name: name.trim(),
            model: model.trim(),
            description: description.trim(),
            chunk_chars: Number(chunk),
            overlap_chars: Number(overlap),
          }),
        )
      }
    >
      {(found) => (
        <>
          <Part
            name="name"
            label="Name"
            needed
            found={found}
            error={duplicate}
            about="Blocks name it. Letters, digits, _ . and -"
          >
            {(ids) => <CodeInput ids={ids} testId="collection-name" value={name} onChange={setName} />}
          </Part>
          <Part
            name="model"
            label="Model of embeddings"
            needed
            found={found}
            about="It stays: vectors of two models cannot be compared. It is asked with the key of its endpoint."
          >
            {(ids) => (
              <ModelBox
                ids={ids}
                testId="collection-model"
                value={model}
                optionsOf={embeddingOptions}
                aboutOf={endpointProblem}
                onChange={(next) => setModel(next ?? '')}
              />
            )}
          </Part>
          <Part name="description" label="Description" found={found}>
            {(ids) => (
              <input
                id={ids.control}
                type="text"
                data-testid="collection-description"
                maxLength={2000}
                value={description}
                onChange={(event) => setDescription(event.target.value)}
              />
            )}
          </Part>
          <div className="triggerform__pair">
            <Part
              name="chunk_chars"
              label="Characters of a chunk"
              found={found}
              error={sizes}
              about="1,600 are about 400 tokens of English."
            >
              {(ids) => <CodeInput ids={ids} testId="collection-chunk" value={chunk} onChange={setChunk} />}
            </Part>
            <Part name="overlap_chars" label="Overlap" found={null} about="Characters of the chunk before.">
              {(ids) => <CodeInput ids={ids} testId="collection-overlap" value={overlap} onChange={setOverlap} />}
            </Part>
          </div>
        </>
      )}
    </EditDialog>
  )
}

function wrongSizes(chunk: string, overlap: string): string | null {
  const [size, shared] = [Number(chunk), Number(overlap)]
  if (!Number.isInteger(size) || size < 200 || size > 8000) return 'A chunk has from 200 to 8,000 characters.'
  if (!overlap.trim() || !Number.isInteger(shared) || shared < 0 || shared > size / 4)
    return 'The overlap is at most a quarter of a chunk.'
  return null
}

interface TextProps {
  collection: string
  onDone: (added: DocumentView) => void
  onClose: () => void
}

export function TextDialog({ collection, onDone, onClose }: TextProps): ReactElement {
  const [name, setName] = useState('')
  const [source, setSource] = useState('')
  const [text, setText] = useState('')
  const why = !name.trim() ? 'Enter a name.' : text.trim() ? null : 'Enter the text.'
  return (
    <EditDialog
      title="Add a text"
      act="Add text"
      testId="text-form"
      why={why}
      fields={['name', 'source', 'text']}
      onClose={onClose}
      onSend={async () => onDone(await knowledge.add(collection, { name: name.trim(), text, source: source.trim() }))}
    >
      {(found) => (
        <>
          <Part
            name="name"
            label="Name"
            needed
            found={found}
            about="Identifies the document: one that is there gets a new version. notes.md is read as Markdown."
          >
            {(ids) => <CodeInput ids={ids} testId="text-name" value={name} onChange={setName} />}
          </Part>
          <Part name="text" label="Text" needed found={found}>
            {(ids) => (
              <textarea
                id={ids.control}
                data-testid="text-text"
                rows={10}
                value={text}
                aria-invalid={ids.invalid || undefined}
                aria-describedby={ids.describedBy}
                onChange={(event) => setText(event.target.value)}
              />
            )}
          </Part>
          <Part name="source" label="Source" found={found} about="Where it is from, such as a URL. Cited with results.">
            {(ids) => <CodeInput ids={ids} testId="text-source" value={source} onChange={setSource} />}
          </Part>
        </>
      )}
    </EditDialog>
  )
}
