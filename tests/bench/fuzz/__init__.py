"""Damaged files at random: every format that Outbid reads, beside a second reader of the same file.

``cases``      a case: a good file, harmed in a few ways; each from one number
``harm``       ways to harm any file: bytes, pieces, whole files of a folder
``harm_text``  ways to harm text: numbers, fields, lines, attributes and elements, JSON, encodings
``harm_binary``  ways to harm what has a structure: tags of TIFF, archives, columns of Parquet
``seeds``      good files: from the writers, and made by hand as other programs write them
``seeds_graph``, ``seeds_image``  the same for graphs, arrays and archives; for images and folders of them
``seeds_bad``  files that are refused as they are
``second``     what second readers return: rows and links; that they cannot judge; that a file is broken
``second_tables``, ``second_xml``, ``second_binary``, ``second_images``  the second readers
``containers`` images in containers, seeds and readers
``kinds``      the table of all this, one entry a format: a new format is one more entry
``judge``      reads a case in process, under limits of time and memory, and compares
``measured``   what of the readers the cases reach, by coverage.py
``run``        runs of cases by their numbers
``__main__``   ``python -m fuzz``: a run
"""
