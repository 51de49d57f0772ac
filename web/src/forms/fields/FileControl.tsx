// A field for a file: chosen or dropped, uploaded at once, then shown with its size. The form holds its value as JSON.

import { useEffect, useRef, useState, type DragEvent, type ReactElement } from 'react'
import { fileIn, sizeText, upload } from '../../net/files'
import { ApiError } from '../../net/http'
import type { Json } from '../../api/schemas'
import { FileChip } from '../../ui/FileChip'
import { Button } from '../../ui/Button'
import './filecontrol.css'

interface FileControlProps extends Record<string, unknown> {
  text: string
  label: string
  onChange: (text: string) => void
}

export function FileControl({ text, label, onChange, ...common }: FileControlProps): ReactElement {
  const [progress, setProgress] = useState<{ name: string; done: number } | null>(null)
  const [failed, setFailed] = useState<string | null>(null)
  const [over, setOver] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const running = useRef<AbortController | null>(null)
  const file = fileIn(read(text))
  useEffect(() => () => running.current?.abort(), [])

  const take = (chosen: File | undefined): void => {
    if (!chosen) return
    const controller = new AbortController()
    running.current?.abort()
    running.current = controller
    setFailed(null)
    setProgress({ name: chosen.name, done: 0 })
    const show = (done: number): void => setProgress({ name: chosen.name, done })
    upload(chosen, show, controller.signal)
      .then((stored) => onChange(JSON.stringify(stored)))
      .catch((error: unknown) => setFailed(error instanceof ApiError ? error.message : 'The upload failed.'))
      .finally(() => {
        setProgress(null)
        if (input.current) input.current.value = ''
      })
  }
  const stop = (): void => {
    running.current?.abort()
    setProgress(null)
  }
  const drop = (event: DragEvent): void => {
    event.preventDefault()
    setOver(false)
    take(event.dataTransfer.files[0])
  }

  return (
    <div
      className={over ? 'filecontrol filecontrol--over' : 'filecontrol'}
      onDragOver={(event) => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      {/* A list of files can be long: the chosen one is shown beside the control, with its size. */}
      <input
        {...common}
        ref={input}
        type="file"
        hidden={file !== null || progress !== null}
        onChange={(event) => take(event.target.files?.[0])}
      />
      {progress ? (
        <div className="filecontrol__row">
          <progress aria-label={`Uploading ${progress.name}`} value={progress.done} max={1} />
          <span className="quiet">{Math.round(progress.done * 100)} %</span>
          <Button onClick={stop}>Cancel</Button>
        </div>
      ) : file ? (
        <div className="filecontrol__row">
          <FileChip file={file} />
          <Button onClick={() => onChange('')} aria-label={`Remove ${file.name} from ${label}`}>
            Remove
          </Button>
        </div>
      ) : null}
      {failed ? (
        <p className="filecontrol__error" role="alert">
          {failed}
        </p>
      ) : null}
      <span className="visually-hidden" role="status">
        {file && !progress ? `${file.name}, ${sizeText(file.size)}` : ''}
      </span>
    </div>
  )
}

function read(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
