"""The dock *Outbid*: from a movie to corrected, measured tracks, a page a step.

`steps`    the dock: a row of steps, the page of one of them, and one button that leads on
`page`     what all pages share; a page around a form, whose fields fold away
`movie`    opens a movie or a session, and says what is in it
`linked`   detection and tracking
`check`    doubtful links, and proofreading of the most doubtful
`measured` the table and the plot
`export`   files of what was found
`session`  the record of it all, and the command lines that repeat it; without a window

The pages stand around the forms of `outbid.viewers.forms`, which have entries of their own in the menus.
"""
