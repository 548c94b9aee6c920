# The .kmt format once more, for machines: https://kaitai.io. spec.md is normative; where the two differ, it wins.
# Checksums, codecs and the walk over sub-buffers are not described here; kaitai/ has a helper and a check for Python.
meta:
  id: kmt
  title: KMT kernel memory trace
  file-extension: kmt
  license: MIT OR Apache-2.0
  ks-version: '0.11'
seq:
  - {id: magic, contents: [0x89, 0x4b, 0x4d, 0x54, 0x0d, 0x0a, 0x1a, 0x0a]}
  - {id: bom, size: 4}
  - {id: file, type: file}
types:
  file:
    meta:
      endian:
        switch-on: _root.bom
        cases:
          '[4, 3, 2, 1]': le
          '[1, 2, 3, 4]': be
    seq:
      - {id: version_major, type: u2}
      - {id: version_minor, type: u2}
      - {id: header_len, type: u4}
      - {id: incompatible, type: u4}
      - {id: compatible, type: u4}
      - {id: size_short, type: u1}
      - {id: size_int, type: u1}
      - {id: size_long, type: u1}
      - {id: size_long_long, type: u1}
      - {id: size_pointer, type: u1}
      - {id: align_u64, type: u1}
      - {id: page_shift, type: u1}
      - {id: size_user_long, type: u1}
      - {id: reserved_a, type: u4}
      - {id: trace_uuid, size: 16}
      - {id: reserved_b, type: u4}
      - {id: later, size: header_len - 64}
      - {id: header_crc, type: u4}
      - {id: chunks, type: chunk, repeat: eos}
    types:
      chunk:
        seq:
          - {id: sync, contents: KMTC}
          - {id: salt, size: 4}
          - {id: kind, type: str, size: 4, encoding: ASCII}
          - {id: flags, type: u1}
          - {id: codec, type: u1}
          - {id: body_version, type: u2}
          - {id: total_len, type: u8}
          - {id: body_len, type: u8}
          - {id: raw_len, type: u8}
          - {id: stream, type: u4}
          - {id: sequence, type: u4}
          - {id: body_crc, type: u4}
          - {id: prefix_len, type: u4}
          - {id: prefix_crc, type: u4}
          - {id: header_crc, type: u4}
          - id: body
            size: body_len
            process: kmt_body(codec, prefix_len, raw_len, _root.bom[0] == 1, _parent.size_long)
            type:
              switch-on: kind
              cases:
                '"SCHM"': schm
                '"EVNT"': evnt
                '"RAWP"': rawp
                '"CLOK"': clok
                '"META"': meta_pairs
                '"FILE"': file_of_target
                '"KSYM"': ksym
                '"TASK"': task_table
                '"STAT"': stat_table
                '"LINE"': line_table
                '"CGRP"': cgroup_table
                '"SUMS"': sums_table
                '"FOLD"': fold
                '"INDX"': indx_table
                '"TRLR"': trlr
                _: opaque
          - {id: padding, size: total_len - 64 - body_len}
      opaque:
        seq:
          - {id: bytes, size-eos: true}
      string_ref:
        seq:
          - {id: offset, type: u4}
          - {id: len, type: u4}
      schm:
        seq:
          - {id: head_len, type: u4}
          - {id: first_class, type: u4}
          - {id: first_shape, type: u4}
          - {id: class_count, type: u4}
          - {id: field_count, type: u4}
          - {id: shape_count, type: u4}
          - {id: slot_count, type: u4}
          - {id: heap_len, type: u4}
          - {id: class_len, type: u2}
          - {id: field_len, type: u2}
          - {id: shape_len, type: u2}
          - {id: slot_len, type: u2}
          - {id: later, size: head_len - 40}
          - {id: classes, type: class_row, size: class_len, repeat: expr, repeat-expr: class_count}
          - {id: fields, type: field_row, size: field_len, repeat: expr, repeat-expr: field_count}
          - {id: shapes, type: shape_row, size: shape_len, repeat: expr, repeat-expr: shape_count}
          - {id: slots, type: slot_row, size: slot_len, repeat: expr, repeat-expr: slot_count}
          - {id: heap, size: heap_len}
      class_row:
        seq:
          - {id: id, type: u2}
          - {id: meaning, type: u2}
          - {id: field_count, type: u2}
          - {id: common_count, type: u2}
          - {id: first_field, type: u4}
          - {id: system, type: string_ref}
          - {id: name, type: string_ref}
          - {id: format_text, type: string_ref}
          - {id: print_fmt, type: string_ref}
      field_row:
        seq:
          - {id: name, type: string_ref}
          - {id: type_text, type: string_ref}
          - {id: offset, type: u4}
          - {id: size, type: u4}
          - {id: kind, type: u1, enum: field_kind}
          - {id: signed, type: u1}
          - {id: element_size, type: u1}
          - {id: reserved, type: u1}
          - {id: role, type: u2}
          - {id: reserved_b, type: u2}
      shape_row:
        seq:
          - {id: class_number, type: u4}
          - {id: first_slot, type: u4}
          - {id: descriptor_len, type: u4}
          - {id: payload_len, type: u4}
      slot_row:
        seq:
          - {id: place, type: u1, enum: place}
          - {id: stored, type: u1}
          - {id: transform, type: u1, enum: transform}
          - {id: base, type: u1}
          - {id: offset, type: u4}
      evnt:
        seq:
          - {id: head_len, type: u4}
          - {id: loss_flags, type: u4}
          - {id: lost_events, type: u8}
          - {id: t_base, type: u8}
          - {id: t_last, type: u8}
          - {id: first_event, type: u8}
          - {id: record_count, type: u4}
          - {id: descriptor_count, type: u4}
          - {id: context_count, type: u4}
          - {id: epoch_count, type: u4}
          - {id: epochs_offset, type: u4}
          - {id: descriptors_offset, type: u4}
          - {id: contexts_offset, type: u4}
          - {id: records_offset, type: u4}
          - {id: heap_offset, type: u4}
          - {id: heap_len, type: u4}
          - {id: record_stride, type: u2}
          - {id: context_stride, type: u2}
          - {id: reserved, type: u4}
          - {id: classes, type: u8}
        instances:
          epochs: {pos: epochs_offset, type: epoch, repeat: expr, repeat-expr: epoch_count}
          descriptors: {pos: descriptors_offset, type: descriptor_ref, repeat: expr, repeat-expr: descriptor_count}
          contexts: {pos: contexts_offset, size: context_stride, repeat: expr, repeat-expr: context_count}
          records: {pos: records_offset, type: record, repeat: expr, repeat-expr: record_count}
          heap: {pos: heap_offset, size: heap_len}
      fold:
        seq:
          - {id: head_len, type: u4}
          - {id: flags, type: u4}
          - {id: number, type: u8}
          - {id: t_begin, type: u8}
          - {id: t_end, type: u8}
          - {id: threshold, type: u8}
          - {id: row_count, type: u4}
          - {id: row_len, type: u4}
          - {id: cpu_count, type: u4}
          - {id: cpu_len, type: u4}
          - {id: bin_count, type: u4}
          - {id: bin_len, type: u4}
          - {id: rows_offset, type: u4}
          - {id: cpus_offset, type: u4}
          - {id: bins_offset, type: u4}
          - {id: events_offset, type: u4}
          - {id: event_count, type: u8}
        instances:
          rows: {pos: rows_offset, type: fold_row, size: row_len, repeat: expr, repeat-expr: row_count}
          cpus: {pos: cpus_offset, type: fold_cpu, size: cpu_len, repeat: expr, repeat-expr: cpu_count}
          bins: {pos: bins_offset, type: fold_bin, size: bin_len, repeat: expr, repeat-expr: bin_count}
          events: {pos: events_offset, type: evnt, size: _io.size - events_offset}
      fold_row:
        seq:
          - {id: alloc, type: u4}
          - {id: free, type: u4}
          - {id: sums, type: u8, repeat: expr, repeat-expr: 7}
          - {id: first_bin, type: u4}
          - {id: bin_count, type: u4}
      fold_cpu:
        seq:
          - {id: cpu, type: u4}
          - {id: reserved, type: u4}
          - {id: events, type: u8}
      fold_bin:
        seq:
          - {id: bin, type: u4}
          - {id: count, type: u4}
      epoch:
        seq:
          - {id: first_record, type: u4}
          - {id: upper, type: u4}
      descriptor_ref:
        seq:
          - {id: offset, type: u4}
        instances:
          target: {pos: offset, type: descriptor}
      descriptor:
        seq:
          - {id: shape, type: u2}
          - {id: len, type: u2}
          - {id: data, size: len}
      record:
        seq:
          - {id: time_offset, type: u4}
          - {id: descriptor, type: u2}
          - {id: context, type: u2}
          - id: value
            type:
              switch-on: _parent.record_stride
              cases: {16: u8, 12: u4}
      rawp:
        seq:
          - {id: head_len, type: u4}
          - {id: loss_flags, type: u4}
          - {id: lost_events, type: u8}
          - {id: t_base, type: u8}
          - {id: t_last, type: u8}
          - {id: first_event, type: u8}
          - {id: record_count, type: u4}
          - {id: sub_buffer_len, type: u4}
          - {id: sub_buffer_count, type: u4}
          - {id: timestamp_offset, type: u2}
          - {id: commit_offset, type: u2}
          - {id: commit_size, type: u2}
          - {id: data_offset, type: u2}
          - {id: class_limit, type: u4}
          - {id: classes, type: u8}
          - {id: later, size: head_len - 72}
          - {id: sub_buffers, size: sub_buffer_len, repeat: expr, repeat-expr: sub_buffer_count}
      clok:
        seq:
          - {id: head_len, type: u4}
          - {id: unit, type: u1}
          - {id: comparable, type: u1}
          - {id: reserved, size: 2}
          - {id: name_len, type: u4}
          - {id: later, size: head_len - 12}
          - {id: name, type: str, size: name_len, encoding: UTF-8}
      meta_pairs:
        seq:
          - {id: head_len, type: u4}
          - {id: pair_len, type: u4}
          - {id: pair_count, type: u4}
          - {id: later, size: head_len - 12}
          - {id: pairs, type: meta_pair(pair_len), repeat: expr, repeat-expr: pair_count}
      meta_pair:
        params:
          - {id: pair_len, type: u4}
        seq:
          - {id: key_len, type: u4}
          - {id: value_len, type: u4}
          - {id: later, size: pair_len - 8}
          - {id: key, type: str, size: key_len, encoding: UTF-8}
          - {id: value, size: value_len}
          # It may be missing behind the last pair.
          - {id: padding, size: (4 - _io.pos % 4) % 4, if: not _io.eof}
      file_of_target:
        seq:
          - {id: head_len, type: u4}
          - {id: name_len, type: u4}
          - {id: contents_len, type: u8}
          - {id: time_first, type: u8}
          - {id: time_last, type: u8}
          - {id: flags, type: u4}
          - {id: reserved, type: u4}
          - {id: later, size: head_len - 40}
          - {id: name, type: str, size: name_len, encoding: UTF-8}
          - {id: padding, size: (8 - _io.pos % 8) % 8}
          - {id: contents, size: contents_len}
      ksym:
        seq:
          - {id: head_len, type: u4}
          - {id: owner_count, type: u4}
          - {id: symbol_count, type: u4}
          - {id: block_count, type: u4}
          - {id: core_start, type: u8}
          - {id: core_end, type: u8}
          - {id: owner_len, type: u4}
          - {id: block_len, type: u4}
          - {id: heap_len, type: u4}
          - {id: reserved, type: u4}
          - {id: later, size: head_len - 48}
          - {id: owners, type: symbol_owner_row, size: owner_len, repeat: expr, repeat-expr: owner_count}
          - {id: blocks, type: symbol_block_row, size: block_len, repeat: expr, repeat-expr: block_count}
          - {id: heap, size: heap_len}
      symbol_owner_row:
        seq:
          - {id: base, type: u8}
          - {id: size, type: u8}
          - {id: name_offset, type: u4}
          - {id: name_len, type: u4}
      symbol_block_row:
        seq:
          - {id: address, type: u8}
          - {id: offset, type: u4}
          - {id: symbol_count, type: u2}
          - {id: reserved, type: u2}
      table_head:
        seq:
          - {id: head_len, type: u4}
          - {id: row_len, type: u4}
          - {id: row_count, type: u4}
          - {id: heap_len, type: u4}
          - {id: later, size: head_len - 16}
      line_table:
        seq:
          - {id: head, type: table_head}
          - {id: rows, type: line_row, size: head.row_len, repeat: expr, repeat-expr: head.row_count}
          - {id: heap, size: head.heap_len}
      line_row:
        seq:
          - {id: address, type: u8}
          - {id: function, type: string_ref}
          - {id: file, type: string_ref}
          - {id: line, type: u4}
          - {id: depth, type: u2}
          - {id: reserved, type: u2}
      cgroup_table:
        seq:
          - {id: head, type: table_head}
          - {id: rows, type: cgroup_row, size: head.row_len, repeat: expr, repeat-expr: head.row_count}
          - {id: heap, size: head.heap_len}
      cgroup_row:
        seq:
          - {id: time, type: u8}
          - {id: id, type: u8}
          - {id: pid, type: s4}
          - {id: hierarchy, type: u4}
          - {id: path, type: string_ref}
      sums_table:
        seq:
          - {id: head, type: table_head}
          - {id: rows, type: sums_row, size: head.row_len, repeat: expr, repeat-expr: head.row_count}
          - {id: heap, size: head.heap_len}
      sums_row:
        seq:
          - {id: time_first, type: u8}
          - {id: time_last, type: u8}
          - {id: call_site, type: u8}
          - {id: numbers, type: u8, repeat: expr, repeat-expr: 3}
          - {id: function, type: string_ref}
          - {id: meaning, type: u2}
          - {id: present, type: u2}
          - {id: reserved, type: u4}
      task_table:
        seq:
          - {id: head, type: table_head}
          - {id: rows, type: task_row, size: head.row_len, repeat: expr, repeat-expr: head.row_count}
      task_row:
        seq:
          - {id: time, type: u8}
          - {id: pid, type: s4}
          - {id: tgid, type: s4}
          - {id: comm, size: 16}
      stat_table:
        seq:
          - {id: head, type: table_head}
          - {id: rows, type: stats_row, size: head.row_len, repeat: expr, repeat-expr: head.row_count}
      stats_row:
        seq:
          - {id: cpu, type: u4}
          - {id: taken, type: u4}
          - {id: present, type: u4}
          - {id: reserved, type: u4}
          - {id: numbers, type: u8, repeat: expr, repeat-expr: 11}
      indx_table:
        seq:
          - {id: head, type: table_head}
          - {id: rows, type: index_row, size: head.row_len, repeat: expr, repeat-expr: head.row_count}
      index_row:
        seq:
          - {id: offset, type: u8}
          - {id: t_base, type: u8}
          - {id: t_last, type: u8}
          - {id: first_event, type: u8}
          - {id: lost_events, type: u8}
          - {id: record_count, type: u4}
          - {id: loss_flags, type: u4}
          - {id: classes, type: u8}
          - {id: header, size: 64}
      trlr:
        seq:
          - {id: head_len, type: u4}
          - {id: chunk_count, type: u4}
          - {id: file_len, type: u8}
          - {id: event_count, type: u8}
          - {id: event_bytes, type: u8}
          - {id: index_offset, type: u8}
    enums:
      field_kind: {0: scalar, 1: fixed_array, 2: data_loc, 3: rel_loc, 4: tail}
      place: {0: class_id, 1: context, 2: descriptor, 3: value, 4: payload}
      transform: {0: none, 1: before_time, 2: before_field}
