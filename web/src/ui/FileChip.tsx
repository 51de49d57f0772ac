// A file among values: its name and size, and its content as a download.

import type { ReactElement } from 'react'
import type { FileValue } from '../api/schemas'
import { fileUrl, sizeText } from '../net/files'
import { Icon } from './icons'
import './filechip.css'

export function FileChip({ file }: { file: FileValue }): ReactElement {
  return (
    <a
      className="filechip"
      href={fileUrl(file.id)}
      download={file.name}
      title={`Download ${file.name}`}
      onClick={(event) => event.stopPropagation()}
    >
      <Icon name="file" size={12} />
      <span className="filechip__name">{file.name}</span>
      <span className="filechip__size">{sizeText(file.size)}</span>
    </a>
  )
}
